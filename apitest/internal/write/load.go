package write

import (
	"context"
	"errors"

	"github.com/anykind/anykind/apitest/internal/store"
)

// Load stores an object as it is, like an object copied from another server's storage: it is decoded and defaulted, but neither
// admitted nor validated. Metadata and status are kept. A missing UID and creationTimestamp are set, and the store assigns the
// resourceVersion. An existing object is replaced.
func (w *Writer) Load(ctx context.Context, req *Request, body Body) error {
	op := w.begin(ctx, req)
	obj, err := op.decode(body)
	if err != nil {
		return err
	}
	if err := op.ensureNamespace(obj); err != nil {
		return err
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
	next, err := op.toStorage(obj)
	if err != nil {
		return err
	}
	key := op.key(obj.GetName())
	if _, err = op.store.Create(key, next); errors.Is(err, store.ErrExists) {
		_, err = op.store.Update(key, "", next)
	}
	return err
}
