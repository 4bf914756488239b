// Package jsonpatch applies JSON patches with the API server's limit of copied bytes.
//
// The library's own limit is a global variable. Setting it would change the process of the test. Instead, a patch with copies is
// first replayed on a separate document to compute the size of each copy. Then the library applies the patch, so all errors besides
// the limit are the library's. If the replay stops at an operation, the library applies the operations up to and including it.
package jsonpatch

import (
	"fmt"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// MaxCopied is the API server's limit of bytes added by the copy operations of a patch.
const MaxCopied = 3 << 20

// Apply returns the patched document. Errors are the library's.
func Apply(document []byte, patch jsonpatch.Patch) ([]byte, error) {
	return apply(document, patch, MaxCopied)
}

func apply(document []byte, patch jsonpatch.Patch, limit int64) ([]byte, error) {
	if !slices.ContainsFunc(patch, func(op jsonpatch.Operation) bool { return op.Kind() == "copy" }) {
		return patch.Apply(document)
	}
	applied, tooLarge := replayed(document, patch, limit)
	if tooLarge != nil {
		if _, err := patch[:applied].Apply(document); err != nil { // such as a failed test
			return nil, err
		}
		return nil, tooLarge
	}
	if applied == len(patch) {
		return patch.Apply(document)
	}
	if _, err := patch[:applied+1].Apply(document); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("apitest: the size of operation %d of the JSON patch is unknown", applied)
}

// replayed returns the number of operations before the first failing operation. tooLarge is the error if that operation exceeds
// limit.
func replayed(document []byte, patch jsonpatch.Patch, limit int64) (applied int, tooLarge error) {
	root := &node{raw: document}
	if !root.open() {
		return 0, nil
	}
	var copied int64
	for i, op := range patch {
		size, ok := root.apply(op)
		if copied += size; copied > limit {
			return i, jsonpatch.NewAccumulatedCopySizeError(limit, copied)
		}
		if !ok {
			return i, nil
		}
	}
	return len(patch), nil
}
