package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/admission"
	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
)

func isBindings(resource *kinds.Resource) bool {
	return resource.Group == "" && resource.Plural == "bindings"
}

// createBinding executes a POST to the resource bindings, an alias of the subresource binding of the pod with that name.
func (w *Writer) createBinding(ctx context.Context, req *Request, body Body) (Result, error) {
	binding := *req
	binding.Resource = w.registry.Lookup("", "v1", "pods")
	binding.Subresource = "binding"
	if body.Err != nil {
		return Result{}, body.Err
	}
	content := body.Object
	if content == nil {
		parsed, _, err := parseObject(body, "Binding")
		if err != nil {
			return Result{}, err
		}
		content = parsed
	}
	binding.Name = (&unstructuredv1.Unstructured{Object: content}).GetName()
	return w.Create(ctx, &binding, body)
}

// bind assigns a pod to the target node of a Binding.
func (op *operation) bind(binding *unstructuredv1.Unstructured) (Result, error) {
	if err := op.ensureNamespace(binding); err != nil {
		return Result{}, err
	}
	if binding.GetName() != op.req.Name {
		return Result{}, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if errs := validateBinding(binding); len(errs) > 0 {
		return Result{}, errs.ToAggregate()
	}
	binding, err := op.mutate(admission.Create, op.req.Name, binding, nil)
	if err != nil {
		return Result{}, err
	}
	if err := op.admit(admission.Create, op.req.Name, binding, nil); err != nil {
		return Result{}, err
	}
	_, notValidated := builtin.Validate(op.groupResource(), op.subresource, binding.Object, nil)
	op.warnFields(notValidated)
	for {
		err := op.assign(binding)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return Result{}, err
		}
		return Result{Object: succeeded(http.StatusCreated), Code: http.StatusCreated}, nil
	}
}

func validateBinding(binding *unstructuredv1.Unstructured) field.ErrorList {
	var errs field.ErrorList
	kind := nested.String(binding.Object, "target", "kind")
	name := nested.String(binding.Object, "target", "name")
	if kind != "" && kind != "Node" {
		errs = append(errs, field.NotSupported(field.NewPath("target", "kind"), kind, []string{"Node", "<empty>"}))
	}
	if name == "" {
		errs = append(errs, field.Required(field.NewPath("target", "name"), ""))
	}
	return errs
}

func (op *operation) assign(binding *unstructuredv1.Unstructured) error {
	stored, exists := op.store.Get(op.key(op.req.Name))
	if !exists {
		return apierrors.NewNotFound(op.groupResource(), op.req.Name)
	}
	old, err := op.view(stored)
	if err != nil {
		return err
	}
	if err := op.checkUID(binding.GetUID(), old); err != nil {
		return err
	}
	if reason := notAssignable(old); reason != nil {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, op.req.Name, reason)
	}
	pod := old.DeepCopy()
	node := nested.String(binding.Object, "target", "name")
	nested.EnsureMap(pod.Object, "spec")["nodeName"] = node
	delete(nested.EnsureMap(pod.Object, "status"), "nominatedNodeName")
	pod.SetAnnotations(merged(pod.GetAnnotations(), binding.GetAnnotations()))
	pod.SetLabels(merged(pod.GetLabels(), binding.GetLabels()))
	op.setCondition(nested.EnsureMap(pod.Object, "status"), metav1.Condition{Type: "PodScheduled", Status: "True"})
	if op.options.isDryRun() {
		return nil
	}
	next, err := op.toStorage(pod)
	if err != nil {
		return err
	}
	_, err = op.store.Update(op.key(op.req.Name), old.GetResourceVersion(), next)
	return err
}

func notAssignable(pod *unstructuredv1.Unstructured) error {
	node := nested.String(pod.Object, "spec", "nodeName")
	gates := nested.Slice(pod.Object, "spec", "schedulingGates")
	switch {
	case pod.GetDeletionTimestamp() != nil:
		return fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.GetName())
	case node != "":
		return fmt.Errorf("pod %v is already assigned to node %q", pod.GetName(), node)
	case len(gates) > 0:
		return fmt.Errorf("pod %v has non-empty .spec.schedulingGates", pod.GetName())
	}
	return nil
}

func merged(base, added map[string]string) map[string]string {
	if len(added) == 0 {
		return base
	}
	result := map[string]string{}
	for name, value := range base {
		result[name] = value
	}
	for name, value := range added {
		result[name] = value
	}
	return result
}
