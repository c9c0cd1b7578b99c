"""The English that the rules know besides the names of things: verbs, order, counts, and words that say nothing.

Every word of an instruction has to be known: one that is not may change what is meant. Tables are texts of
words, or of phrases divided by "|".
"""

from __future__ import annotations

# Regular forms are made from these.
VERBS: dict[str, str] = {
    "put": """
        put place lay set drop stand store stow leave deposit transfer move relocate shift carry bring go belong
        join add return stash rest position insert slip pop park tuck pack load stack end keep hide send deliver
        replace situate dump arrange hand swap sit plop toss throw land settle
    """,
    "pick": """
        pick use grab take get grasp fetch lift collect hold remove seize retrieve
    """,
    "pour": """
        pour tip drizzle splash give fill top serve douse sprinkle dribble squirt squeeze cover apply spread season
        flavour flavor soak moisten coat
    """,
    "open": """
        open reopen unlatch
    """,
    "close": """
        close shut reclose
    """,
    "look": """
        look check peek inspect examine see view search explore glance survey find discover learn
    """,
    "pull": """
        pull swing slide draw
    """,
    "push": """
        push press
    """,
}
IRREGULAR: dict[str, str] = {
    "put": "placing laid stood left leaving leaves brought went gone goes kept hidden hid sent sat",
    "pick": "took taken got gotten held",
    "pour": "gave given",
    "look": "saw seen found",
    "pull": "drawn slid swung",
    "open": "opened",
    "close": "closed shutting",
}
# The first word takes the forms of a verb.
VERB_PHRASES: dict[str, str] = {
    "put": """
        put | find a place for | find room for | end up | make room for | make its way | make their way | change
        places
    """,
    "look": """
        have a look | take a look | look into | look inside | look in | look through | have a peek | take a peek
        | get a look
    """,
    "pick": """
        pick up | take hold of | get hold of | take out
    """,
    "repeat": """
        do the same with | do the same for | do the same thing with | repeat this with | repeat that with |
        repeat with | same with | repeat the same with | repeat this for | likewise with | do so with | do
        likewise with
    """,
    "leave open": """
        do not leave | do not keep
    """,
    "redo": """
        do it | do that | do this | do so | repeat | repeat this | repeat that
    """,
}
PREPOSITIONS: dict[str, str] = {
    "in": "in | into | inside | within | to | toward | towards | inside of",
    "on": "on | onto | upon | at",
    "over": "over | on top of | above | all over | over the top of",
    "from": "from | off | out of | off of | away from",
    "beside": "beside | next to | near | alongside | by | along with | together with | adjacent to | close to",
    "where": "where | wherever | to where",
    "with": "with",
}
# kind of token -> its value -> phrases
PHRASES: dict[str, dict[object, str]] = {
    "count": {
        2: "twice | two times | 2x | 2 times | x2 | 2 x | two rounds | double",
        3: "three times | thrice | 3x | 3 times | x3",
        1: "one time | just once | a single time | 1 time | 1x",
    },
    "again": {
        1: """
            again | once more | one more time | another time | a second time | once again | a 2nd time | second
            time | second pour | another pour | one more | another
        """,
    },
    "then": {
        "": """
            then | next | finally | followed by | afterwards | afterward | after that | after this | after it |
            after them |
            at the end | in the end | at last | subsequently | thereafter | following that | following this |
            after which | thereupon | later | secondly | in a second step | to finish | to conclude | continue
            by | proceed by | finish by | proceed to | continue to | once done | when done | once finished |
            when finished | when you are done | once you are done | when you have finished | once that is done |
            when that is done | after doing so | after having done so | once this is done | when this is done |
            with that done | that done | once that has been done | as a last step | as the last step | having
            done so | having done that | second | third | once you have finished | when you are finished
        """,
    },
    "last": {
        "": "last | lastly | last of all",
    },
    "front": {
        "": "before that | beforehand | before this | prior to that | before doing so | before you do",
    },
    "first": {
        "": """
            first | firstly | first of all | to begin with | to start with | initially | first off | start by |
            begin by | start with | begin with | starting with | starting by | beginning with | as a first step
        """,
    },
    "link": {
        "before": "before | prior to | not until after",
        "after": "after | following",
        "once": "once | when | as soon as | whenever | only after | only when | only once | now that",
    },
    "and": {
        "": "and | plus | as well as | &",
    },
    "but": {
        "": "but | though | however | yet",
    },
    "each": {
        "each": """
            each | every | each one | every one | each of them | each of the | each time | every time | always |
            respective
        """,
        "all": "all | both | all of them | both of them | all the | all of the",
    },
    "pronoun": {
        "it": "it | the item | the object | that item | that object",
        "them": """
            them | these | they | items | objects | both items | both objects | both things | all items | two
            items | two objects | everything
        """,
        "there": "there | in there | therein | inside it | in it",
        "exact": """
            same side | same place | same spot | same half | same mat | same position | same location | same
            area | that side | that half | that spot | that place | same part
        """,
        "one": "one",
    },
    "same": {
        "": "same",
    },
    "copula": {
        "": """
            is | are | was | were | lies | lie | has | have | has been | have been | holds | contains | there is
            | there are | sits | be | been | being | stands | there you find | you find | you will find | there
            has to be | is lying | are lying | is sitting | are sitting | located | waits
        """,
    },
    "modal": {
        "": """
            should be | has to be | have to be | must be | needs to be | need to be | ought to be | is to be |
            are to be | shall be | want | would like | should | shall | must | has to | have to | needs to |
            need to | needs | need | is supposed to | are supposed to | is meant to | ought to | is to | are to
            | will
        """,
    },
    "back": {
        "": """
            back | aside | down | to the side | to one side | off to the side | back where it was | where it was |
            back where it came from | back where it stood | back in its place | back to its place | back where you
            found it | back where you took it from | back to where it was | back to where it came from
        """,
    },
    "direction": {
        "down": """
            from top to bottom | top to bottom | top down | from the top down | from the top one down | from the top |
            from the top drawer down | from the top drawer downwards | from the top one to the bottom one | from the
            top drawer to the bottom drawer | from the top drawer to the bottom one | downwards | from top down |
            top first
        """,
        "up": """
            from bottom to top | from the bottom to the top | bottom to top | bottom up | from the bottom up |
            from the bottom | from the bottom one up | from the bottom drawer up | upwards | bottom first
        """,
    },
    "refuse": {
        "": """
            not | no | never | nothing | without | none | neither | nor | except | unless | if | or | instead |
            either | rather | avoid | skip
        """,
    },
}

# What says that a place holds something, or nothing.
STATES: dict[str, str] = {
    "occupied": """
        not empty | non empty | nonempty | not the empty | already occupied | in use | already in use | with
        something in it | with something inside | has something in it | has something inside | holds something |
        has something | contains something | already has something in it | already holds something | already
        contains something | already has something inside | something in it | something inside | something
        already | with contents | already filled | not unoccupied | holding something | containing something |
        already something in it | something is in | something is inside | something in | not free | not vacant |
        occupied | filled | already taken | already used | holds an item | contains an item | with an item in it
        | not bare | something already in it | something already inside | not unused
    """,
    "empty": """
        empty | unused | vacant | unoccupied | with nothing in it | with nothing inside | has nothing in it |
        has nothing inside | holds nothing | contains nothing | nothing in it | nothing inside | nothing is in |
        not occupied | not in use | free | bare | does not hold anything | does not contain anything | not hold
        anything | not contain anything | nothing in | still empty | not filled | has nothing | not have
        anything in it | not have anything inside
    """,
}

NUMBERS = {"one": 1, "a": 1, "two": 2, "2": 2, "three": 3, "3": 3, "single": 1}
# "two splashes"
COUNTED = """
    splash splashes serving servings helping helpings portion portions dose doses glug glugs squirt squirts pour
    pours shot shots dash dashes round rounds measure measures drizzle drizzles time times glass glasses
"""

# What says nothing about what is to be done.
FILLER_PHRASES = """
    do not forget to | remember to | make sure to | be sure to | make sure that | make sure | do not forget |
    please do not forget to | to see what is inside | to see what is in them | to see what they hold | what is
    inside | what is in it | what is in them | what they contain | what they hold | what it contains | to know
    what is inside | in this order | in that order | in order | in turn | in the order given | in sequence | one
    by one | one after the other | one after another | one at a time | one of the two | one of the | one of
    these | one of them | out of the two | two of them | two of these | two of the | the next | next one | i
    would like you to | i would like | i want you to | i want | would you | could you | can you | will you | be
    so kind as to | be so kind | if you please | for me | would like | i like | i need you to | i need | you are
    asked to | your task is to | your job is to | it is time to | let us | go ahead and | in the scene | on hand
    | so that | such that | that way | as well | right side up | already in it | in order to | go over to | you
    can | you will | at once | at a time | the time | of all | to be | close by | of it | of them | by the
    handle | with the gripper | in that sequence | in the following order | go on to the next | move on to the
    next | going on to the next | moving on to the next | continuing with the next | going on | moving on | you
    move on | you go on | keep in mind | bear in mind | would you mind | do you mind | help me | you see | you saw |
    you can see | that you see | what you see | what you saw | what you find | what you found | what they hide |
    before you continue | before continuing | before moving on | before you move on | before going on | before you go
    on | before proceeding | before you proceed | before the next | making sure to | making sure that | making sure |
    being sure to | taking care to | take care to | take care that | in total | let us | clean up | tidy up | tidying
    up | you will need to | you need to | we need to | i need to | continuing with | continue with | after inspection |
    after inspecting | after checking | after looking | to find it | to find them | to find out | to see | for
    later | all in all | that is all | the job is done
"""
FILLERS = """
    a an the this that these those which whichever who whose what its his their my our your i you me we us he
    she please kindly would could can may might do does did just simply carefully gently neatly slowly quickly
    now also too so thanks thank hello hi hey robot ok okay right away up out along through across even still
    only already some bit little of for as such well two three four 2 3 upright standing straight upside being
    having whole entire somewhere anywhere else here respectively accordingly separately immediately directly soon
    quite very properly fully completely securely kitchen side identical handle lid nicely tidy safely large
    small big final together cabinet chest am wait waiting remember remembering recall memorise memorize note notice
    noting forget forgot know knowing mind help want wants ensure ensuring sure task job done really exactly precisely
    need needed needing moment alright great well
"""
