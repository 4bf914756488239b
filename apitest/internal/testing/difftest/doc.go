// Package difftest draws operations from a seed, plays them on two API servers and compares the normalised responses: status
// codes, bodies, warnings, watch events and final states. It is for tests only.
package difftest
