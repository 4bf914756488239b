package write

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/anykind/anykind/apitest/internal/admission"
	"github.com/anykind/anykind/apitest/internal/store"
)

// Create executes a POST to a resource, or to a subresource such as a pod's eviction or binding.
func (w *Writer) Create(ctx context.Context, req *Request, body Body) (result Result, err error) {
	if isBindings(req.Resource) {
		return w.createBinding(ctx, req, body)
	}
	op := w.begin(ctx, req)
	defer op.finish(&result, &err)
	if body.Err != nil { // before the options, unlike in Update
		return Result{}, body.Err
	}
	if op.options, err = createOptions(req.Query); err != nil {
		return Result{}, err
	}
	op.manager = managerName(op.options.fieldManager, req.UserAgent)
	obj, err := op.decode(body)
	if err != nil {
		return Result{}, err
	}
	if req.Subresource != "" {
		return op.createSubresource(obj) //nolint:contextcheck // validation computes only
	}
	name := obj.GetName()
	wipeSystemFields(obj)
	if err := op.ensureNamespace(obj); err != nil {
		return Result{}, err
	}
	op.dedupeOwners(obj, false)
	if obj, err = op.manage(op.empty(), obj); err != nil {
		return Result{}, err
	}
	if obj, err = op.mutate(admission.Create, name, obj, nil); err != nil {
		return Result{}, err
	}
	if err := op.confirmNoEscalation(obj, nil); err != nil {
		return Result{}, err
	}
	op.isPost = true
	created, err := op.createWithRetry(obj)
	if err != nil {
		return Result{}, err
	}
	return Result{Object: created.Object, Code: http.StatusCreated}, nil
}

// createWithRetry retries with a new generated name if the generated name exists.
func (op *operation) createWithRetry(obj *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
	if obj.GetGenerateName() == "" || obj.GetName() != "" {
		return op.create(obj)
	}
	for attempt := 1; ; attempt++ {
		created, err := op.create(obj.DeepCopy())
		if err == nil || !apierrors.IsAlreadyExists(err) || attempt == maxGeneratedAttempts {
			return created, err
		}
	}
}

func (op *operation) create(obj *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
	if err := op.beforeCreate(obj); err != nil {
		return nil, err
	}
	key := op.key(obj.GetName())
	existing, exists := op.store.Get(key)
	if op.options.isDryRun() { // a dry run ignores the resourceVersion
		if exists {
			return nil, op.alreadyExists(obj, existing)
		}
		view, err := op.dryRunView(obj, obj.GetResourceVersion())
		return op.asRead(view), err
	}
	if op.isPost && obj.GetResourceVersion() != "" && !op.options.isDryRun() { // rejected by the store only
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	if exists {
		return nil, op.alreadyExists(obj, existing)
	}
	next, err := op.encode(obj)
	if err != nil {
		return nil, err
	}
	stored, err := op.store.Create(key, next)
	switch {
	case errors.Is(err, store.ErrExists):
		existing, _ := op.store.Get(key)
		return nil, op.alreadyExists(obj, existing)
	case err != nil:
		return nil, err
	}
	return op.shown(stored)
}

// dryRunView returns obj as it would be read after the write.
func (op *operation) dryRunView(obj *unstructuredv1.Unstructured, version string) (*unstructuredv1.Unstructured, error) {
	stored, err := op.toStorage(obj)
	if err != nil {
		return obj, err
	}
	view, err := op.view(stored)
	view.SetResourceVersion(version)
	view.SetSelfLink(obj.GetSelfLink()) // removed by the store only
	return view, err
}

func (op *operation) alreadyExists(obj *unstructuredv1.Unstructured, existing store.Object) error {
	err := apierrors.NewAlreadyExists(op.groupResource(), obj.GetName())
	if obj.GetGenerateName() != "" {
		err = apierrors.NewGenerateNameConflict(op.groupResource(), obj.GetName(), 1)
	}
	if existing != nil && (&unstructuredv1.Unstructured{Object: existing}).GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// beforeCreate completes and validates a new object.
func (op *operation) beforeCreate(obj *unstructuredv1.Unstructured) error {
	op.fillSystemFields(obj)
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(op.generateName(obj.GetGenerateName()))
	}
	if err := op.ensureNamespace(obj); err != nil {
		return err
	}
	op.rules.prepareCreate(op, obj)
	if op.groupResource() == (groupResource{Resource: "namespaces"}) { // the defaults ran before the name was generated
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["kubernetes.io/metadata.name"] = obj.GetName()
		obj.SetLabels(labels)
	}
	if errs := op.rules.validate(op, obj, nil); len(errs) > 0 {
		return apierrors.NewInvalid(obj.GroupVersionKind().GroupKind(), obj.GetName(), errs)
	}
	if errs := op.validateMetadata(obj); len(errs) > 0 {
		return apierrors.NewInvalid(obj.GroupVersionKind().GroupKind(), obj.GetName(), errs)
	}
	op.warnFinalizers(obj, nil)
	return op.admit(admission.Create, obj.GetName(), obj, nil)
}
