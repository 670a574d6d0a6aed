"""The operations of TensorFlow that a policy may contain.

They compute numbers from numbers, as Keras' layers and `keras.ops` do. None of
them reads or writes a file, prints, opens a connection, or runs code.
"""

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
