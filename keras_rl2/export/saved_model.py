"""A SavedModel, checked before TensorFlow loads any part of it.

Loading one runs parts of it, and calling it the rest: a graph may write files
as well as multiply. So the graph is read as plain data, and all operations
that could run are compared with the list of operations that policies need.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_rl2.export.wire_format import fields
from keras_rl2.files.plain_files import read_bytes
from keras_rl2.files.plain_files import require_file

#: The signature of exported policies.
SIGNATURE = "serving_default"
# A graph of a thousand layers: weights are in other files.
_MOST_BYTES = 2**24
_META_GRAPH = 2
# Nodes once all functions are inlined, and depth of the calls.
_MOST_NODES, _MOST_LEVELS = 2**17, 64
# Numbers of all constants: a few bytes can declare any number of them.
_MOST_NUMBERS = 2**24
# Kinds of objects that run no code of their own.
_KINDS = frozenset(
    {
        "bare_concrete_function",
        "captured_tensor",
        "constant",
        "function",
        "variable",
        # Objects of user classes, restored without their code.
        "_generic_user_object",
        "signature_map",
        "trackable_dict_wrapper",
        "trackable_list_wrapper",
        "trackable_tuple_wrapper",
    }
)
# Prefix of attributes by which one function can replace another.
_REPLACING = "api_"


def check(path: Path) -> None:
    """Checks that a SavedModel only computes actions; loads nothing.

    Args:
        path: Path. The folder.

    Raises:
        ValueError: If it holds pipes or devices, operations or objects that
            policies do not need, or declares more numbers than it has.
    """
    _require_files(path)
    graph = _meta_graph(path)
    if graph.asset_file_def:
        raise ValueError("files besides its weights, which no policy has")
    if SIGNATURE not in graph.signature_def:
        raise ValueError(f"no signature {SIGNATURE!r}")
    _check_objects(graph.object_graph_def.nodes)
    _Functions(graph).check()
    _check_variables(path)


def _require_files(path: Path) -> None:
    """Raises an error for pipes and devices, which may never end."""
    require_file(path / "saved_model.pb")
    others = (
        path / "fingerprint.pb",
        path / "debug" / "saved_model_debug_info.pb",
    )
    for each in (*others, *(path / "variables").iterdir()):
        if os.path.lexists(each):
            require_file(each)


def _meta_graph(path: Path) -> Any:
    """Returns the only graph, as a message of TensorFlow."""
    import tensorflow as tf

    content = read_bytes(path / "saved_model.pb", _MOST_BYTES)
    graphs = [
        value for number, value in fields(content) if number == _META_GRAPH
    ]
    if len(graphs) != 1:
        raise ValueError(f"{len(graphs)} graphs instead of one")
    graph = tf.compat.v1.MetaGraphDef.FromString(graphs[0])
    # The loader of TensorFlow 1 runs operations of the graph at once.
    if not graph.HasField("object_graph_def"):
        raise ValueError("a graph of TensorFlow 1, which no policy has")
    return graph


def _check_objects(objects: Any) -> None:
    """Raises an error for objects other than functions and variables."""
    for each in objects:
        kind = each.WhichOneof("kind")
        if each.registered_name or each.registered_saver:
            kind = each.registered_name or each.registered_saver
        elif each.saveable_objects or each.slot_variables:
            kind = "with variables of its own"
        elif kind == "user_object":
            kind = each.user_object.identifier
        if kind not in _KINDS:
            raise ValueError(f"an object {kind!r:.80}, which no policy has")


class _Functions:
    """The functions of a graph; functions that could run are checked.

    The others save and restore variables for other programs: TensorFlow itself
    reads the variables from their files.

    Args:
        graph: `MetaGraphDef`.
    """

    def __init__(self, graph: Any) -> None:
        library = graph.graph_def.library
        if library.gradient:
            raise ValueError("gradients, which no policy has")
        self._functions = {
            each.signature.name: each for each in library.function
        }
        if len(self._functions) < len(library.function):
            raise ValueError("two functions of one name")
        self._graph = graph
        self._sizes: dict[str, int] = {}
        self._numbers = 0

    def check(self) -> None:
        """Raises an error for operations and calls that no policy has."""
        for each in self._functions.values():
            if any(name.startswith(_REPLACING) for name in each.attr):
                raise ValueError("functions that replace others")
        # Captured constants are nodes of the graph itself.
        for node in self._graph.graph_def.node:
            self._count_numbers(node)
        for name in _entries(self._graph.object_graph_def):
            self._check(name, ())

    def _check(self, name: str, within: tuple[str, ...]) -> int:
        """Checks a function with all that it calls; returns its nodes."""
        if name in self._sizes:
            return self._sizes[name]
        if name in within or len(within) > _MOST_LEVELS:
            raise ValueError("functions that call themselves, or too deep")
        if name not in self._functions:
            raise ValueError(f"no function {name!r:.80}, which is called")
        nodes = self._functions[name].node_def
        size = _bounded(len(nodes))
        for node in nodes:
            self._count_numbers(node)
            if node.op not in OPERATIONS and node.op not in self._functions:
                raise ValueError(
                    f"the operation {node.op!r:.80}, which no policy needs; "
                    "tf.saved_model.load runs a model that you trust"
                )
            for called in self._called(node):
                size = _bounded(size + self._check(called, (*within, name)))
        self._sizes[name] = size
        return size

    def _called(self, node: Any) -> Iterator[str]:
        """Yields the names of functions that a node calls."""
        if node.op in self._functions:
            yield node.op
        for value in node.attr.values():
            if value.HasField("func"):
                yield value.func.name
            for each in value.list.func:
                yield each.name

    def _count_numbers(self, node: Any) -> None:
        """Raises an error for constants of more numbers than a policy has."""
        for value in node.attr.values():
            for tensor in (value.tensor, *value.list.tensor):
                sizes = [dim.size for dim in tensor.tensor_shape.dim]
                if min(sizes, default=0) < 0:
                    raise ValueError("a constant without a shape")
                self._numbers += math.prod(sizes)
        if self._numbers > _MOST_NUMBERS:
            raise ValueError(
                f"constants of more than {_MOST_NUMBERS:,} numbers"
            )


def _bounded(size: int) -> int:
    """Returns a number of operations, if a policy can have as many."""
    if size > _MOST_NODES:
        raise ValueError(f"more than {_MOST_NODES:,} operations")
    return size


def _entries(objects: Any) -> set[str]:
    """Returns the names of the functions of objects."""
    found = {*objects.concrete_functions}
    for each in objects.nodes:
        found.update(each.function.concrete_functions)
        found.add(each.bare_concrete_function.concrete_function_name)
        found.add(each.captured_tensor.concrete_function)
    return found - {""}


def _check_variables(path: Path) -> None:
    """Raises an error for weights larger than the files they are in."""
    import tensorflow as tf

    folder = path / "variables"
    reader = tf.train.load_checkpoint(str(folder / "variables"))
    dtypes = reader.get_variable_to_dtype_map()
    declared = sum(
        math.prod(shape) * max(dtypes[name].size or 0, 0)
        for name, shape in reader.get_variable_to_shape_map().items()
    )
    there = sum(each.stat().st_size for each in folder.iterdir())
    if declared > there:
        raise ValueError(
            f"its weights would be {declared:,} bytes, of {there:,} that are "
            "in its files"
        )


_ARITHMETIC = """
Abs Acos Acosh Add AddN AddV2 Angle Asin Asinh Atan Atan2 Atanh BesselI0
BesselI0e BesselI1 BesselI1e Betainc BitwiseAnd BitwiseOr BitwiseXor Ceil
CheckNumerics ClipByValue Complex ComplexAbs Conj Cos Cosh Cross Digamma Div
DivNoNan Elu Equal Erf Erfc Erfinv Exp Expm1 Floor FloorDiv FloorMod Greater
GreaterEqual Igamma Igammac Imag Inv Invert IsFinite IsInf IsNan LeakyRelu
LeftShift Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr
Maximum Minimum Mod Mul MulNoNan Ndtri Neg NextAfter NotEqual Polygamma
PopulationCount Pow Real RealDiv Reciprocal Relu Relu6 RightShift Rint Round
Rsqrt Select SelectV2 Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Square
SquaredDifference Sub Tan Tanh TruncateDiv TruncateMod Xdivy Xlog1py Xlogy Zeta
"""
_REDUCTIONS = """
All Any ApproxTopK ArgMax ArgMin Bincount Bucketize Cumprod Cumsum
CumulativeLogsumexp DenseBincount EuclideanNorm HistogramFixedWidth InTopK
InTopKV2 InvertPermutation L2Loss LogSoftmax LowerBound Max Mean Min NthElement
Prod SegmentMax SegmentMaxV2 SegmentMean SegmentMin SegmentMinV2 SegmentProd
SegmentProdV2 SegmentSum SegmentSumV2 Softmax SoftmaxCrossEntropyWithLogits
SparseSoftmaxCrossEntropyWithLogits Sum TopK TopKV2 Unique UniqueV2
UniqueWithCounts UniqueWithCountsV2 UnsortedSegmentMax UnsortedSegmentMin
UnsortedSegmentProd UnsortedSegmentSum UpperBound
"""
_SHAPES = """
BatchToSpace BatchToSpaceND Bitcast BroadcastArgs BroadcastTo Cast Concat
ConcatOffset ConcatV2 ConjugateTranspose Const DepthToSpace Diag DiagPart
DynamicPartition DynamicStitch EnsureShape ExpandDims Fill Gather GatherNd
GatherV2 Identity IdentityN LinSpace ListDiff MatrixBandPart MatrixDiag
MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3
MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 MirrorPad NoOp OneHot OnesLike
Pack Pad PadV2 ParallelDynamicStitch Placeholder PlaceholderWithDefault
PreventGradient Range Rank Reshape Reverse ReverseSequence ReverseV2 Roll
ScatterNd ScatterNdNonAliasingAdd Shape ShapeN Size Slice Snapshot SpaceToBatch
SpaceToBatchND SpaceToDepth SparseToDense Split SplitV Squeeze StopGradient
StridedSlice TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub
TensorScatterUpdate TensorStridedSliceUpdate Tile Transpose Unpack UnravelIndex
Where XlaDynamicUpdateSlice ZerosLike
"""
_NETWORKS = """
AdjustContrastv2 AdjustHue AdjustSaturation AvgPool AvgPool3D BatchMatMul
BatchMatMulV2 BatchMatMulV3 BiasAdd BiasAddV1 BlockLSTM BlockLSTMV2 Conv Conv2D
Conv2DBackpropInput Conv2DBackpropInputV2 Conv3D Conv3DBackpropInputV2
CropAndResize CudnnRNN CudnnRNNV2 CudnnRNNV3 DataFormatDimMap
DataFormatVecPermute DepthwiseConv2dNative Dilation2D Einsum ExtractImagePatches
ExtractVolumePatches FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3
GRUBlockCell HSVToRGB ImageProjectiveTransformV2 ImageProjectiveTransformV3 LRN
LSTMBlockCell MatMul MaxPool MaxPool3D MaxPoolV2 MaxPoolWithArgmax RGBToHSV
ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor ScaleAndTranslate
"""
_LINEAR_ALGEBRA = """
Cholesky Eig FFT FFT2D FFT3D IFFT IFFT2D IFFT3D IRFFT IRFFT2D IRFFT3D
LogMatrixDeterminant Lu MatrixDeterminant MatrixExponential MatrixInverse
MatrixSolve MatrixSolveLs MatrixSquareRoot MatrixTriangularSolve Qr RFFT RFFT2D
RFFT3D SelfAdjointEigV2 Svd TridiagonalMatMul TridiagonalSolve
"""
_RANDOM_NUMBERS = """
Multinomial RandomGamma RandomPoissonV2 RandomShuffle RandomStandardNormal
RandomUniform RandomUniformInt StatelessMultinomial StatelessRandomBinomial
StatelessRandomGammaV2 StatelessRandomGammaV3 StatelessRandomGetAlg
StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg
StatelessRandomNormal StatelessRandomNormalV2 StatelessRandomPoisson
StatelessRandomUniform StatelessRandomUniformFullInt
StatelessRandomUniformFullIntV2 StatelessRandomUniformInt
StatelessRandomUniformIntV2 StatelessRandomUniformV2 StatelessShuffle
StatelessTruncatedNormal StatelessTruncatedNormalV2 TruncatedNormal
"""
# Of layers with a `training` argument, and of layers with loops.
_VARIABLES = """
AssignAddVariableOp AssignSubVariableOp AssignVariableOp ReadVariableOp
ResourceGather ResourceGatherNd VarIsInitializedOp VariableShape
"""
_CONTROL = """
Assert Case If PartitionedCall StatefulPartitionedCall StatelessCase StatelessIf
StatelessWhile While
"""
_LISTS = """
EmptyTensorList TensorListConcatV2 TensorListElementShape TensorListFromTensor
TensorListGather TensorListGetItem TensorListLength TensorListPopBack
TensorListPushBack TensorListReserve TensorListResize TensorListSetItem
TensorListSplit TensorListStack
"""

#: Names of the operations.
OPERATIONS = frozenset(
    " ".join(
        [
            *(_ARITHMETIC, _REDUCTIONS, _SHAPES, _NETWORKS, _LINEAR_ALGEBRA),
            *(_RANDOM_NUMBERS, _VARIABLES, _CONTROL, _LISTS),
        ]
    ).split()
)
