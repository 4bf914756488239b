// Package history checks the promises of docs/RELIABILITY.md for a whole run: an [Etcd] records what etcd stored, a [Recorder] what
// streams, caches, controllers and leases observed, and each [Property] compares both. The storms of its tests inject faults
// between a sandbox and the observers:
//
//	make history ROUNDS=200
package history
