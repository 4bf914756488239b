package write

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/admission"
	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/nested"
)

const (
	budgetMessage     = "Cannot evict pod as it would violate the pod's disruption budget."
	budgetRetrySecond = 10
	maxDisruptedPods  = 2000
)

// createSubresource executes a POST to a subresource.
func (op *operation) createSubresource(obj *unstructuredv1.Unstructured) (Result, error) {
	pods := op.resource.Group == "" && op.resource.Plural == "pods"
	switch {
	case pods && op.subresource == "eviction":
		return op.evict(obj)
	case pods && op.subresource == "binding":
		return op.bind(obj)
	}
	return Result{}, apierrors.NewMethodNotSupported(op.groupResource(), "create")
}

// evict deletes a pod if the PodDisruptionBudgets of its namespace allow it.
func (op *operation) evict(eviction *unstructuredv1.Unstructured) (Result, error) {
	if err := op.ensureNamespace(eviction); err != nil {
		return Result{}, err
	}
	if eviction.GetName() != op.req.Name {
		return Result{}, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	eviction, err := op.mutate(admission.Create, op.req.Name, eviction, nil)
	if err != nil {
		return Result{}, err
	}
	options, err := op.evictionOptions(eviction)
	if err != nil {
		return Result{}, err
	}
	if err := op.admit(admission.Create, op.req.Name, eviction, nil); err != nil {
		return Result{}, err
	}
	_, notValidated := builtin.Validate(op.groupResource(), op.subresource, eviction.Object, nil)
	op.warnFields(notValidated)
	stored, exists := op.store.Get(op.key(op.req.Name))
	if !exists {
		return Result{}, apierrors.NewNotFound(op.groupResource(), op.req.Name)
	}
	pod, err := op.view(stored)
	if err != nil {
		return Result{}, err
	}
	if ignoresBudgets(pod) {
		return op.deleteEvicted(pod, options)
	}
	budgets, err := op.budgetsOf(pod)
	switch {
	case err != nil:
		return Result{}, err
	case len(budgets) > 1:
		return Result{}, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		}}
	case len(budgets) == 1 && !mayEvictUnready(pod, budgets[0]):
		if err := op.takeFromBudget(pod, budgets[0].GetName(), len(options.DryRun) > 0); err != nil {
			return Result{}, err
		}
	}
	return op.deleteEvicted(pod, options)
}

// evictionOptions returns the DeleteOptions of the eviction, with the request's dryRun.
func (op *operation) evictionOptions(eviction *unstructuredv1.Unstructured) (*metav1.DeleteOptions, error) {
	options := new(metav1.DeleteOptions)
	if content, found, _ := unstructuredv1.NestedMap(eviction.Object, "deleteOptions"); found {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	switch {
	case len(options.DryRun) == 0:
		options.DryRun = op.options.dryRun
	case len(op.options.dryRun) > 0 && !slices.Equal(options.DryRun, op.options.dryRun):
		return nil, fmt.Errorf("Non-matching dry-run options in request and content: %v and %v", op.options.dryRun, options.DryRun) //nolint:staticcheck // the server's text
	}
	return options, nil
}

// ignoresBudgets reports whether a pod is pending, finished or being deleted.
func ignoresBudgets(pod *unstructuredv1.Unstructured) bool {
	phase := nested.String(pod.Object, "status", "phase")
	return phase == "Succeeded" || phase == "Failed" || phase == "Pending" || pod.GetDeletionTimestamp() != nil
}

// mayEvictUnready reports whether a pod that is not ready may be evicted without counting as a disruption.
func mayEvictUnready(pod, budget *unstructuredv1.Unstructured) bool {
	if nested.HasCondition(pod.Object, "Ready") {
		return false
	}
	policy := nested.String(budget.Object, "spec", "unhealthyPodEvictionPolicy")
	desired := statusNumber(budget, "desiredHealthy")
	return policy == "AlwaysAllow" || desired > 0 && statusNumber(budget, "currentHealthy") >= desired
}

func statusNumber(obj *unstructuredv1.Unstructured, name string) int64 {
	n := nested.Int64(obj.Object, "status", name)
	return n
}

// budgetsOf returns the PodDisruptionBudgets with a selector matching the pod.
func (op *operation) budgetsOf(pod *unstructuredv1.Unstructured) ([]*unstructuredv1.Unstructured, error) {
	stored, _, err := op.store.List("policy", "poddisruptionbudgets", pod.GetNamespace(), 0)
	if err != nil {
		return nil, err
	}
	var budgets []*unstructuredv1.Unstructured
	for _, obj := range stored {
		var typed metav1.LabelSelector
		content, found, _ := unstructuredv1.NestedMap(obj, "spec", "selector")
		if !found || runtime.DefaultUnstructuredConverter.FromUnstructured(content, &typed) != nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&typed)
		if err == nil && selector.Matches(labels.Set(pod.GetLabels())) {
			budgets = append(budgets, &unstructuredv1.Unstructured{Object: obj})
		}
	}
	return budgets, nil
}

// takeFromBudget counts the disruption in the budget's status, or rejects the eviction.
func (op *operation) takeFromBudget(pod *unstructuredv1.Unstructured, name string, dryRun bool) error {
	resource := op.registry.Lookup("policy", "v1", "poddisruptionbudgets")
	budgets := op.begin(op.ctx, &Request{Resource: resource, Subresource: "status", Namespace: pod.GetNamespace(), Name: name, UserAgent: serverManager})
	budgets.manager = serverManager
	if dryRun {
		budgets.options.dryRun = []string{metav1.DryRunAll}
	}
	_, _, err := budgets.guaranteedUpdate(func(live *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
		budget := live.DeepCopy()
		if err := checkBudget(budget); err != nil {
			return nil, err
		}
		status := nested.EnsureMap(budget.Object, "status")
		allowed := statusNumber(budget, "disruptionsAllowed") - 1
		status["disruptionsAllowed"] = allowed
		if allowed == 0 {
			budgets.setCondition(status, metav1.Condition{Type: "DisruptionAllowed", Status: "False", Reason: "InsufficientPods"})
			setObservedGeneration(status, live.GetGeneration())
		}
		nested.EnsureMap(status, "disruptedPods")[pod.GetName()] = op.now().UTC().Format(time.RFC3339)
		return budgets.manage(live, budget)
	}, nil, "", false)
	return err
}

func setObservedGeneration(status map[string]any, generation int64) {
	conditions := nested.Slice(status, "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "DisruptionAllowed" {
			condition["message"] = ""
			condition["observedGeneration"] = generation
		}
	}
}

// checkBudget returns an error if the budget allows no disruption.
func checkBudget(budget *unstructuredv1.Unstructured) error {
	name := budget.GetName()
	resource := schema.GroupResource{Group: "policy", Resource: "poddisruptionbudget"}
	disrupted, _, _ := unstructuredv1.NestedMap(budget.Object, "status", "disruptedPods")
	switch allowed := statusNumber(budget, "disruptionsAllowed"); {
	case statusNumber(budget, "observedGeneration") < budget.GetGeneration():
		return tooManyDisruptions(budgetRetrySecond, fmt.Sprintf("The disruption budget %s is still being processed by the server.", name))
	case allowed < 0:
		return apierrors.NewForbidden(resource, name, errors.New("pdb disruptions allowed is negative"))
	case len(disrupted) > maxDisruptedPods:
		return apierrors.NewForbidden(resource, name, errors.New("DisruptedPods map too big - too many evictions not confirmed by PDB controller"))
	case allowed == 0:
		return tooManyDisruptions(0, budgetReason(budget))
	}
	return nil
}

func budgetReason(budget *unstructuredv1.Unstructured) string {
	name := budget.GetName()
	current := statusNumber(budget, "currentHealthy")
	desired := statusNumber(budget, "desiredHealthy")
	reason, message := conditionReason(budget, "DisruptionAllowed")
	switch {
	case message != "" && reason == "SyncFailed":
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently because it failed sync: %s", name, message)
	case current <= desired:
		return fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", name, desired, current)
	case message != "":
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently (%s): %s", name, reason, message)
	}
	return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", name)
}

// conditionReason returns the reason and message of a False condition.
func conditionReason(obj *unstructuredv1.Unstructured, kind string) (reason, message string) {
	condition := nested.Condition(obj.Object, kind)
	if condition["status"] != "False" {
		return "", ""
	}
	return nested.String(condition, "reason"), nested.String(condition, "message")
}

func tooManyDisruptions(retrySeconds int, cause string) error {
	err := apierrors.NewTooManyRequests(budgetMessage, retrySeconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: "DisruptionBudget", Message: cause})
	return err
}

// deleteEvicted adds the condition DisruptionTarget to a pod and deletes it.
func (op *operation) deleteEvicted(pod *unstructuredv1.Unstructured, options *metav1.DeleteOptions) (Result, error) {
	if err := checkPreconditions(options.Preconditions, pod); err != nil {
		return Result{}, err
	}
	deletion := op.begin(op.ctx, &Request{Resource: op.resource, Namespace: pod.GetNamespace(), Name: pod.GetName(), User: op.req.User, UserAgent: op.req.UserAgent})
	deletion.options.dryRun = options.DryRun
	if len(options.DryRun) == 0 {
		marked, err := deletion.markDisrupted()
		if err != nil {
			return Result{}, err
		}
		if options.Preconditions != nil && options.Preconditions.ResourceVersion != nil {
			version := marked.GetResourceVersion()
			options.Preconditions.ResourceVersion = &version
		}
	}
	if _, _, err := deletion.delete(options); err != nil {
		return Result{}, err
	}
	return Result{Object: succeeded(http.StatusCreated), Code: http.StatusCreated}, nil
}

func (op *operation) markDisrupted() (*unstructuredv1.Unstructured, error) {
	status := op.begin(op.ctx, &Request{Resource: op.resource, Subresource: "status", Namespace: op.req.Namespace, Name: op.req.Name})
	pod, _, err := status.guaranteedUpdate(func(live *unstructuredv1.Unstructured) (*unstructuredv1.Unstructured, error) {
		pod := live.DeepCopy()
		status.setCondition(nested.EnsureMap(pod.Object, "status"), metav1.Condition{
			Type: "DisruptionTarget", Status: "True", Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		})
		return pod, nil
	}, func(_, _ *unstructuredv1.Unstructured) error { return nil }, "", false)
	return pod, err
}
