"""Which folder may import which: the layers of docs/architecture.md, read from the source of every module."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODELS = ("memory_bank", "planner", "actor")  # run on a bare GPU machine, without a simulator
BELOW_EXPERTS = ("predimem.core", "predimem.jobs", "predimem.rendering", *MODELS, "predimem.envs", "predimem.agent")
BELOW_PIPELINES = (*BELOW_EXPERTS, "datagen", "predimem.evaluation", "predimem.serving")
# folder -> the folders that it may import besides itself
LAYERS: dict[str, tuple[str, ...]] = {
    "predimem.core": (),
    "predimem.jobs": ("predimem.core",),
    "predimem.rendering": ("predimem.core",),
    "memory_bank": ("predimem.core",),
    "predimem.envs": ("predimem.core", "predimem.jobs", "predimem.rendering"),
    "planner": ("predimem.core", "memory_bank"),
    "actor": ("predimem.core", "memory_bank"),
    "predimem.agent": ("predimem.core", "memory_bank"),
    "datagen": BELOW_EXPERTS,
    "predimem.evaluation": (*BELOW_EXPERTS, "datagen"),
    "predimem.serving": (*BELOW_EXPERTS, "datagen"),
    "predimem.pipelines": BELOW_PIPELINES,
    "predimem.cli": (*BELOW_PIPELINES, "predimem.pipelines"),
}
PACKAGES = ("predimem", "planner", "actor", "memory_bank", "datagen")
SIMULATORS = ("mani_skill", "mikasa_robo_suite", "sapien", "gymnasium", "open3d", "ray")
HEAVY = ("torch", "torchvision", "transformers", "swift", *SIMULATORS)
LOADS_THE_SIMULATOR = "scene"  # folders of this name are imported only when an environment is made
MS_SWIFT_PLUGIN = "planner.sft"  # loaded by `swift sft`, never by our own code


def modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(tree: ast.AST, module: str) -> Iterator[tuple[str, int]]:
    """(module imported, line), with `from package import module` resolved to the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: relative import; write the whole name"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (inner if inner in MODULES else str(node.module)), node.lineno


def on_import(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run when the module is imported: no function bodies, no TYPE_CHECKING."""
    for statement in tree.body:
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            continue
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement


def layer_of(module: str) -> str | None:
    """The folder of `LAYERS` that a module lies in; None for `predimem` itself."""
    return next((layer for layer in LAYERS if module == layer or module.startswith(f"{layer}.")), None)


def may_import(module: str, other: str) -> bool:
    here, there = layer_of(module), layer_of(other)
    return there is None or here == there or (here is not None and there in LAYERS[here])


def test_every_module_is_in_a_layer() -> None:
    assert [module for module in MODULES if layer_of(module) is None] == ["predimem"]


@pytest.mark.parametrize("module", MODULES)
def test_layers(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text())
    ours = [(n, line) for n, line in imports(tree, module) if n.split(".")[0] in PACKAGES]
    wrong = [f"{module}:{line} imports {name}" for name, line in ours if not may_import(module, name)]
    assert not wrong


def test_no_module_imports_itself_through_others() -> None:
    """Imports inside functions and for type checkers count, too."""
    graph = {
        module: {name for name, _ in imports(ast.parse(path.read_text()), module) if name in MODULES} - {module}
        for module, path in MODULES.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"circle of imports: {' -> '.join(error.args[1])}") from None


@pytest.mark.parametrize("module", [m for m in MODULES if layer_of(m) in MODELS])
def test_models_and_memory_know_no_simulator(module: str) -> None:
    """ms-swift only trains."""
    foreign = [*SIMULATORS, *(() if module == MS_SWIFT_PLUGIN else ("swift",))]
    tree = ast.parse(MODULES[module].read_text())
    wrong = [f"{module}:{line} imports {n}" for n, line in imports(tree, module) if n.split(".")[0] in foreign]
    assert not wrong


@pytest.mark.parametrize(
    "module",
    [m for m in MODULES if layer_of(m) not in ("planner", "actor") and LOADS_THE_SIMULATOR not in m.split(".")],
)
def test_heavy_imports_wait_until_needed(module: str) -> None:
    for statement in on_import(ast.parse(MODULES[module].read_text())):
        early = [n for n, _ in imports(statement, module) if n.split(".")[0] in HEAVY]
        assert not early, f"{module}:{statement.lineno} imports {early} on import; move it where it is used"


def test_the_core_never_imports_torch() -> None:
    core = [module for module in MODULES if layer_of(module) == "predimem.core"]
    found = {name.split(".")[0] for m in core for name, _ in imports(ast.parse(MODULES[m].read_text()), m)}
    assert not found & set(HEAVY)


def test_the_rule_itself() -> None:
    assert may_import("predimem.cli.train", "planner.decoding")
    assert may_import("planner.dataset", "memory_bank.bank")
    assert may_import("datagen.dagger.worker", "predimem.agent.dual_system")
    assert may_import("predimem.envs.mikasa.suite", "predimem.rendering.maniskill")
    assert not may_import("predimem.agent.dual_system", "planner.decoding")
    assert not may_import("actor.policy", "planner.prompt")
    assert not may_import("planner.decoding", "predimem.envs.arena.task")
    assert not may_import("memory_bank.bank", "predimem.rendering.vulkan")
    assert not may_import("predimem.evaluation.run.journal", "predimem.serving.store")
    assert not may_import("predimem.core.config", "predimem.agent.clock")
    tree = ast.parse("from predimem.core import config\nfrom predimem.core.types import Plan\nimport planner.prompt")
    assert [n for n, _ in imports(tree, "m")] == ["predimem.core.config", "predimem.core.types", "planner.prompt"]


def test_importing_predimem_is_light() -> None:
    """Neither the core nor the command line pulls in torch, a simulator or matplotlib."""
    light = [
        "predimem",
        *(m for m in MODULES if layer_of(m) in ("predimem.core", "predimem.cli") and "__main__" not in m),
    ]
    heavy = (*HEAVY, "matplotlib", "imageio", "h5py")
    script = f"import sys, {', '.join(light)}\nprint(sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
