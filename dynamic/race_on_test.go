//go:build race

package dynamic_test

// byteStep is how many bytes lie between two that [TestFollow_EveryByte] breaks. The race detector makes a case ten times
// as slow, and one byte in 17 is in every part of every event.
const byteStep = 17
