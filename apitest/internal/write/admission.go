package write

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/anykind/anykind/apitest/internal/access"
	"github.com/anykind/anykind/apitest/internal/admission"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

// mutate runs the steps before validation: the check of the namespace, the mutating plugins, and the functions and webhooks.
func (op *operation) mutate(operation admission.Operation, name string, obj, old *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
	if err := op.checkNamespace(operation, obj); err != nil {
		return nil, err
	}
	if operation == admission.Create && op.subresource == "" {
		if err := op.checkTerminating(displayName(obj)); err != nil {
			return nil, err
		}
	}
	attributes := op.attributes(operation, name, obj, old)
	if err := op.admission.MutateByPlugins(attributes); err != nil {
		return nil, err
	}
	managed := obj.GetManagedFields()
	before := obj.DeepCopy()
	if err := op.admission.Mutate(op.ctx, attributes); err != nil {
		return nil, err
	}
	mutated, err := op.afterMutation(before, attributes.Object)
	if err != nil {
		return nil, err
	}
	if err := managedfields.ValidateManagedFields(mutated.GetManagedFields()); err != nil {
		mutated.SetManagedFields(managed)
		op.warn(".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: " + err.Error())
	}
	op.dedupeOwners(mutated, true)
	return mutated, nil
}

// afterMutation decodes an object changed by admission like a request body: with defaults, without unknown fields.
func (op *operation) afterMutation(before *unstructuredv1.Unstructured, content map[string]any) (*unstructuredv1.Unstructured, error) {
	if equality.Semantic.DeepEqual(before.Object, content) {
		return &unstructuredv1.Unstructured{Object: content}, nil
	}
	decoded, _, err := op.coerce(content)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &unstructuredv1.Unstructured{Object: decoded}, nil
}

// admit runs the validating admission on the object to be stored.
func (op *operation) admit(operation admission.Operation, name string, obj, old *unstructuredv1.Unstructured) error {
	return op.admission.Validate(op.ctx, op.attributes(operation, name, obj.DeepCopy(), old))
}

// admitDelete runs the mutating and validating admission of a deletion.
func (op *operation) admitDelete(old *unstructuredv1.Unstructured, options *metav1.DeleteOptions) error {
	if err := op.checkImmortal(); err != nil {
		return err
	}
	attributes := op.attributes(admission.Delete, op.req.Name, nil, old.DeepCopy())
	attributes.Options = options
	attributes.DryRun = len(options.DryRun) > 0
	if err := op.admission.Mutate(op.ctx, attributes); err != nil {
		return err
	}
	return op.admission.Validate(op.ctx, attributes)
}

func (op *operation) attributes(operation admission.Operation, name string, obj, old *unstructuredv1.Unstructured) *admission.Attributes {
	attributes := &admission.Attributes{
		Operation: operation, Resource: op.resource, Subresource: op.subresource, Kind: op.kind(),
		Namespace: op.namespaceForAdmission(name), Name: name,
		DryRun: op.options.isDryRun(), User: op.req.User, Warn: op.warn,
	}
	if obj != nil {
		attributes.Object = obj.Object
	}
	if old != nil {
		attributes.OldObject = old.DeepCopy().Object
	}
	switch operation {
	case admission.Create:
		attributes.Options = op.options.asCreate()
	case admission.Update:
		attributes.Options = op.options.asUpdate()
	default: // admitDelete sets the options of a deletion
	}
	return attributes
}

// namespaceForAdmission returns the request's namespace. For a namespace it is the namespace's name.
func (op *operation) namespaceForAdmission(name string) string {
	if op.resource.Group == "" && op.resource.Plural == "namespaces" {
		return name
	}
	return op.objectNamespace()
}

// checkNamespace rejects writes into a missing namespace, and creations in a terminating namespace.
func (op *operation) checkNamespace(operation admission.Operation, obj *unstructuredv1.Unstructured) error {
	namespace := op.objectNamespace()
	if namespace == "" {
		return nil
	}
	stored, exists := op.store.Get(store.Key{Resource: "namespaces", Name: namespace})
	if !exists {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
	}
	phase := nested.String(stored, "status", "phase")
	if operation != admission.Create || phase != "Terminating" {
		return nil
	}
	err := op.forbidden(displayName(obj), fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: "NamespaceTerminating", Message: fmt.Sprintf("namespace %s is being terminated", namespace), Field: "metadata.namespace",
	})
	return err
}

// forbidden returns the 403 error of a rejection by admission.
func (op *operation) forbidden(name string, reason error) *apierrors.StatusError {
	resource := op.groupResource()
	if op.subresource != "" {
		resource.Resource += "/" + op.subresource
	}
	return apierrors.NewForbidden(resource, name, reason)
}

// checkImmortal rejects the deletion of the system's namespaces.
func (op *operation) checkImmortal() error {
	if op.resource.Group != "" || op.resource.Plural != "namespaces" {
		return nil
	}
	switch op.req.Name {
	case "default", "kube-system", "kube-public":
		return apierrors.NewForbidden(op.groupResource(), op.req.Name, errors.New("this namespace may not be deleted"))
	}
	return nil
}

// confirmNoEscalation rejects roles and bindings that grant more than the user's own rights. old is nil for a creation. Updates
// of owner references and finalizers alone are exempt, for the garbage collector.
func (op *operation) confirmNoEscalation(obj, old *unstructuredv1.Unstructured) error {
	if op.access == nil || op.resource.Group != "rbac.authorization.k8s.io" {
		return nil
	}
	grant := access.Grant{Resource: op.resource.Plural, Namespace: op.objectNamespace(), Name: op.req.Name, Object: obj.Object}
	if old != nil {
		changed := obj.DeepCopy()
		changed.SetOwnerReferences(old.GetOwnerReferences())
		changed.SetFinalizers(old.GetFinalizers())
		changed.SetManagedFields(old.GetManagedFields())
		if equality.Semantic.DeepEqual(changed.Object, old.Object) {
			return nil
		}
		grant.Old = old.Object
	}
	return op.access.ConfirmNoEscalation(&op.req.User, grant)
}
