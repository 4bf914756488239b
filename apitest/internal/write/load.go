package write

import "context"

// Load stores an object as it is, like an object copied from another server's storage: it is decoded and defaulted, but neither
// admitted nor validated. Metadata and status are kept. A missing UID and creationTimestamp are set, and the store assigns the
// resourceVersion.
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
	key := op.key(obj.GetName())
	if existing, exists := op.store.Get(key); exists {
		return op.alreadyExists(obj, existing)
	}
	next, err := op.toStorage(obj)
	if err != nil {
		return err
	}
	_, err = op.store.Create(key, next)
	return err
}
