from benchmarks.mikasa_table import by_family, counts_of, table


def results(**outcomes):
    """A compact results file in which `planner` played each task with these outcomes."""
    groups = [
        {"task": f"{task}-VLA-v0", "agent": "planner", "rows": [[900_000 + i, status] for i, status in enumerate(rows)]}
        for task, rows in outcomes.items()
    ]
    return {"columns": ["seed", "status"], "groups": groups}


def test_errors_are_in_no_rate():
    counts = counts_of(results(RememberColor3=["success", "error", "failure", "success"]))
    assert counts == {"RememberColor3-VLA-v0": {"planner": (2, 3)}}


def test_a_line_a_task_a_family_and_the_tasks_of_the_five_task_protocol():
    found = results(RememberColor3=["success"] * 4, RememberColor5=["failure"] * 4, RememberShape3=["success"] * 4)
    lines = table(counts_of(found), ["planner", "other"]).splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[0] for row in cells] == [
        *("RememberColor3", "RememberColor5", "RememberShape3", "mean of RememberColor"),
        "mean of the 2 that were played of the five-task protocol",
    ]
    assert cells[0][1].startswith("4/4 [0.51") and cells[0][2:] == ["", "0.65", "RATE"]
    assert cells[3][1] == "0.50" and cells[4][1:] == ["0.50", "", "0.75 (all five)", "Chameleon"]


def test_a_line_an_agent_with_the_means_of_families():
    found = results(
        RememberColor3=["success"] * 4, RememberColor5=["failure"] * 3 + ["error"], TakeItBack=["success"] * 4
    )
    counts = counts_of(found)
    counts["TakeItBack-VLA-v0"]["other"] = (1, 2)
    head, _, planner, other = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in by_family(counts, ["planner", "other"]).splitlines()
    )
    assert head == ["agent config", "episodes a task", "RememberColor", "TakeItBack", "mean of all tasks"]
    assert planner == ["`planner`", "3 to 4", "0.50", "1.00", "0.67"]
    assert other == ["`other`", "2", "", "0.50", ""]
