"""Who imports whom: the layers of docs/architecture.md, read from the source of every module."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("predimem", "planner", "actor", "memory_bank", "datagen")
CORE = tuple(
    f"predimem.{name}"
    for name in (
        *("types", "interfaces", "config", "frames", "episodes", "scene_facts"),
        *("labels", "seeds", "jsonl", "pool", "processes"),
    )
)
ASSEMBLY = ("predimem.assemble", "predimem.cli")  # may name every concrete part
# Shared by evaluation suites and datagen; they know the simulator, not the system.
RENDERING = ("predimem.culling", "predimem.rendering", "predimem.vulkan")
SIMULATORS = ("mani_skill", "mikasa_robo_suite", "sapien", "gymnasium", "open3d", "ray")
HEAVY = ("torch", "torchvision", "transformers", "swift", *SIMULATORS)
# The arena's scene, written against the simulator; only the entry point of its environments loads it.
SCENE_PARTS = ("environment", "furniture", "groceries", "looks", "mats", "parts", "reading", "saving", "shading")
SCENE = (*(f"datagen.arena.{name}" for name in (*SCENE_PARTS, "time_limit")), "datagen.skills.delta_pose_env")
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


def within(name: str, allowed: tuple[str, ...]) -> bool:
    return any(name == a or name.startswith(f"{a}.") for a in allowed)


def may_import(module: str, other: str) -> bool:
    """The rule, between modules of this repository."""
    package = module.split(".")[0]
    if other == "predimem" or other in CORE:
        return True
    if within(module, ASSEMBLY):
        return True
    if within(other, ASSEMBLY) or module in CORE or module == "predimem":
        return False
    if module in RENDERING:
        return other in RENDERING
    if package == "predimem":
        return within(other, ("predimem", "memory_bank"))
    if package == "planner":
        return within(other, ("planner", "memory_bank"))
    if package == "datagen":
        return within(other, ("datagen",)) or other in RENDERING
    return within(other, (package,))


@pytest.mark.parametrize("module", MODULES)
def test_layers(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text())
    ours = [(n, line) for n, line in imports(tree, module) if n.split(".")[0] in PACKAGES]
    wrong = [f"{module}:{line} imports {name}" for name, line in ours if not may_import(module, name)]
    assert not wrong


@pytest.mark.parametrize("module", [m for m in MODULES if m.split(".")[0] in PACKAGES[1:4]])
def test_models_and_memory_know_no_simulator(module: str) -> None:
    """planner, actor and memory_bank run on a bare GPU machine; ms-swift only trains."""
    foreign = [*SIMULATORS, *(() if module == MS_SWIFT_PLUGIN else ("swift",))]
    tree = ast.parse(MODULES[module].read_text())
    wrong = [f"{module}:{line} imports {n}" for n, line in imports(tree, module) if n.split(".")[0] in foreign]
    assert not wrong


@pytest.mark.parametrize(
    "module",
    [m for m in MODULES if m.split(".")[0] in ("predimem", "memory_bank", "datagen") and m not in SCENE],
)
def test_heavy_imports_wait_until_needed(module: str) -> None:
    for statement in on_import(ast.parse(MODULES[module].read_text())):
        early = [n for n, _ in imports(statement, module) if n.split(".")[0] in HEAVY]
        assert not early, f"{module}:{statement.lineno} imports {early} on import; move it where it is used"


def test_the_rule_itself() -> None:
    assert may_import("predimem.cli", "planner.decoding")
    assert may_import("planner.dataset", "memory_bank.bank")
    assert may_import("datagen.collect", "predimem.rendering")
    assert may_import("predimem.evaluation.suites.mikasa", "predimem.rendering")
    assert not may_import("predimem.agent", "planner.decoding")
    assert not may_import("actor.policy", "planner.prompt")
    assert not may_import("actor.policy", "predimem.agent")
    assert not may_import("datagen.collect", "predimem.assemble")
    assert not may_import("memory_bank.bank", "predimem.rendering")
    assert not may_import("predimem.config", "predimem.agent")
    tree = ast.parse("from predimem import config\nfrom predimem.types import Plan\nimport planner.prompt")
    assert [n for n, _ in imports(tree, "m")] == ["predimem.config", "predimem.types", "planner.prompt"]


def test_importing_predimem_is_light() -> None:
    """Neither the core nor the command line pulls in torch, a simulator or matplotlib."""
    light = [
        "predimem",
        *CORE,
        *(m for m in MODULES if within(m, ("predimem.cli", "predimem.assemble")) and "__main__" not in m),
    ]
    heavy = (*HEAVY, "matplotlib", "imageio", "h5py")
    script = f"import sys, {', '.join(light)}\nprint(sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
