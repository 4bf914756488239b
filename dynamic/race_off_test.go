//go:build !race

package dynamic_test

// byteStep is how many bytes lie between two that [TestFollow_EveryByte] breaks.
const byteStep = 1
