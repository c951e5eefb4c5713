"""Models of ONNX files as targets: onnxruntime runs them, and they are measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from attnproof.cli import main
from attnproof.real_code.loading import CannotLoad, load, require_target

LINE = "q: B H r 8, k: B H n 8, v: B H n 8 -> B H r 8"
TORCH = "import torch\nattend = torch.nn.functional.scaled_dot_product_attention\n"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Attention over heads of 8 channels: with the scale 1/√8, and with 1/8."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    make = onnx.helper
    nodes = [
        make.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        make.make_node("MatMul", ["q", "kt"], ["s"]),
        make.make_node("Mul", ["s", "c"], ["t"]),
        make.make_node("Softmax", ["t"], ["w"], axis=-1),
        make.make_node("MatMul", ["w", "v"], ["out"]),
    ]
    kind = onnx.TensorProto.FLOAT
    shapes = {"q": "r", "k": "n", "v": "n", "out": "r"}
    q, k, v, out = (
        make.make_tensor_value_info(name, kind, ["B", "H", rows, 8])
        for name, rows in shapes.items()
    )
    for name, scale in (("right", 8**-0.5), ("wrong", 0.125)):
        own = [make.make_tensor("c", kind, [], [scale])]
        graph = make.make_graph(nodes, name, [q, k, v], [out], own)
        model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=9)
        onnx.save(model, tmp_path / f"{name}.onnx")
    (tmp_path / "port.py").write_text(TORCH, encoding="utf-8")
    return tmp_path


def test_a_model_is_compared_with_code(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    second = f"{models / 'port.py'}::attend"
    wrong, right = str(models / "wrong.onnx"), str(models / "right.onnx")
    assert main(["equal", wrong, second, "--call", LINE]) == 1
    assert "counterexample" in capsys.readouterr().out
    assert main(["equal", right, second, "--call", LINE]) == 0
    shown = capsys.readouterr().out
    assert "≈ measured: the same function up to rounding where it was run" in shown
    assert "proved: the same function" not in shown


def test_a_model_says_what_it_takes(models: Path) -> None:
    loaded = load(str(models / "right.onnx"))
    assert (loaded.name, Path(loaded.file)) == ("right", (models / "right.onnx").resolve())
    with pytest.raises(TypeError, match="missing a required argument: 'k'"):
        loaded.thing(q=None)
    with pytest.raises(CannotLoad, match="wanted the whole model"):
        require_target(f"{models / 'right.onnx'}::attend")
    (models / "none.onnx").write_bytes(b"no model")
    with pytest.raises(CannotLoad, match="cannot be read by onnxruntime"):
        load(str(models / "none.onnx"))


def test_what_a_call_raises_is_not_logged_beside(
    models: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    loaded = load(str(models / "right.onnx"))
    q, k = torch.ones(1, 2, 3, 8), torch.ones(1, 3, 3, 8)
    with pytest.raises(Exception, match="cannot broadcast"):
        loaded.thing(q, k, k)
    assert capfd.readouterr().err == ""


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model.onnx"
    with pytest.raises(CannotLoad, match="which does not exist"):
        load(str(model))
    model.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(CannotLoad, match="onnxruntime, which is not installed: pip install"):
        load(str(model))
