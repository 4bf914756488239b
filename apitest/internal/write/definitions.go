package write

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/store"
	"github.com/anykind/anykind/apitest/internal/structural"
)

const (
	definitionGroup  = "apiextensions.k8s.io"
	definitionPlural = "customresourcedefinitions"
	cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io"
	serverManager    = "kube-apiserver"
)

// deleteDefinition sets the deletionTimestamp of a definition. Package definitions then deletes its objects. done is false if the
// deletionTimestamp was already set.
func (op *operation) deleteDefinition(old *unstructuredv1.Unstructured, options *metav1.DeleteOptions) (done bool, response map[string]any, err error) {
	if err := op.checkRecord(old, options); err != nil {
		return true, nil, err
	}
	if old.GetDeletionTimestamp() != nil {
		return false, nil, nil
	}
	if err := op.admitDelete(old, options); err != nil {
		return true, nil, err
	}
	obj := old.DeepCopy()
	now := metav1.NewTime(op.now())
	obj.SetDeletionTimestamp(&now)
	obj.SetFinalizers(append(obj.GetFinalizers(), cleanupFinalizer))
	op.setCondition(nested.EnsureMap(obj.Object, "status"), metav1.Condition{
		Type: "Terminating", Status: "True", Reason: "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	})
	if obj, err = op.storeMarked(obj, old.GetResourceVersion()); err != nil {
		return true, nil, err
	}
	return true, obj.Object, nil
}

// validateRules returns the errors of the CEL rules of a definition, or warns that they are not compiled.
func (op *operation) validateRules(definition, old map[string]any) field.ErrorList {
	if rules := op.registry.Rules(); rules != nil {
		return rules.ValidateDefinition(op.ctx, definition, old)
	}
	op.warnNotValidated(structural.RulesNotValidated(definition))
	return nil
}

// checkTerminating rejects new objects of a terminating definition.
func (op *operation) checkTerminating(name string) error {
	if op.resource.Definition == nil {
		return nil
	}
	definition := unstructuredv1.Unstructured{Object: op.resource.Definition}
	stored, exists := op.store.Get(store.Key{Group: definitionGroup, Resource: definitionPlural, Name: definition.GetName()})
	if exists && (&unstructuredv1.Unstructured{Object: stored}).GetDeletionTimestamp() != nil {
		return op.forbidden(name, errors.New("create not allowed while custom resource definition is terminating"))
	}
	return nil
}

// setCondition adds or replaces a condition. lastTransitionTime changes only with the condition's status.
func (op *operation) setCondition(status map[string]any, condition metav1.Condition) {
	now := op.now().UTC().Format(time.RFC3339)
	conditions := nested.Slice(status, "conditions")
	entry := map[string]any{"type": condition.Type, "status": string(condition.Status), "lastTransitionTime": now}
	if condition.Reason != "" {
		entry["reason"] = condition.Reason
	}
	if condition.Message != "" {
		entry["message"] = condition.Message
	}
	if op.resource.Group == "" && op.resource.Plural == "pods" {
		entry["lastProbeTime"] = nil
	}
	for i, c := range conditions {
		if old, ok := c.(map[string]any); ok && old["type"] == condition.Type {
			if old["status"] == entry["status"] {
				entry["lastTransitionTime"] = old["lastTransitionTime"]
			}
			conditions[i] = entry
			return
		}
	}
	status["conditions"] = append(conditions, entry)
}
