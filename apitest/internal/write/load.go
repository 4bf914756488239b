package write

import (
	"context"

	"github.com/anykind/anykind/unstructured"
)

// Stored returns an object in the form that the store has after a creation. The object is decoded and defaulted, but neither admitted
// nor validated. Metadata and status are kept. A missing UID, creationTimestamp and namespace are set.
func (w *Writer) Stored(ctx context.Context, req *Request, lazy *unstructured.Lazy) (*unstructured.Lazy, error) {
	op := w.begin(ctx, req)
	given, err := lazy.Object()
	if err != nil {
		return nil, err
	}
	obj, err := op.decode(Body{Object: given.Object})
	if err != nil {
		return nil, err
	}
	if err := op.ensureNamespace(obj); err != nil {
		return nil, err
	}
	op.rules.setDefaults(obj.Object)
	uid := obj.GetUID()
	created := obj.GetCreationTimestamp()
	op.fillSystemFields(obj)
	if uid != "" {
		obj.SetUID(uid)
	}
	if !created.IsZero() {
		obj.SetCreationTimestamp(created)
	}
	stored, err := op.toStorage(obj)
	if err != nil {
		return nil, err
	}
	data, err := unstructured.Encode(&unstructured.Object{Object: stored})
	if err != nil {
		return nil, err
	}
	return unstructured.DecodeLazy(data)
}
