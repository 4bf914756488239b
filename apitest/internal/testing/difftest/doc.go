// Package difftest draws operations from a seed, plays them on two API servers and compares what the servers answered: status
// codes, bodies, warnings, watch events and final states, after normalising what must differ. It has tests only.
package difftest
