package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	limitedpatch "github.com/anykind/anykind/apitest/internal/jsonpatch"
	"github.com/anykind/anykind/apitest/internal/nested"
)

// callError is a failed call of a webhook. The failure policy decides whether it rejects the request.
type callError struct {
	webhook string
	cause   error
}

func (e *callError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.webhook, e.cause)
}

func (e *callError) Unwrap() error { return e.cause }

// mutate calls the webhooks in order. If a webhook changes the object, earlier webhooks with reinvocationPolicy IfNeeded are called
// a second time at the end.
func (a *Admission) mutate(ctx context.Context, hooks []*invocation, attributes *Attributes) error {
	reinvoke := map[*invocation]bool{}
	for _, hook := range hooks {
		changed, err := a.mutateOnce(ctx, hook, attributes)
		if err != nil {
			return err
		}
		for _, before := range hooks {
			if changed && before != hook && before.called && before.ReinvocationPolicy == "IfNeeded" {
				reinvoke[before] = true
			}
		}
		hook.called = true
	}
	for _, hook := range hooks {
		if reinvoke[hook] {
			if _, err := a.mutateOnce(ctx, hook, attributes); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Admission) mutateOnce(ctx context.Context, hook *invocation, attributes *Attributes) (changed bool, err error) {
	response, err := a.callOrIgnore(ctx, hook, attributes, true)
	if err != nil || response == nil || len(response.Patch) == 0 {
		return false, err
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		return false, a.failed(hook, &callError{hook.Name, fmt.Errorf("received undecodable patch in webhook response: %w", err)})
	}
	if len(patch) == 0 {
		return false, nil
	}
	if attributes.Object == nil {
		return false, apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", hook.Name))
	}
	if response.PatchType != "JSONPatch" {
		return false, a.failed(hook, &callError{hook.Name, fmt.Errorf("unsupported patch type %q", response.PatchType)})
	}
	converted, err := a.converted(ctx, hook, attributes.Object)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	before, err := json.Marshal(converted)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	after, err := limitedpatch.Apply(before, patch)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(after, &object); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	if err := a.Convert(ctx, hook.resource.Definition, object, nested.String(attributes.Object, "apiVersion")); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	changed = !reflect.DeepEqual(attributes.Object, object)
	attributes.Object = object
	return changed, nil
}

// validate calls the webhooks at the same time and returns the first error in their order.
func (a *Admission) validate(ctx context.Context, hooks []*invocation, attributes *Attributes) error {
	errs := make([]error, len(hooks))
	var mu sync.Mutex
	shared := *attributes
	if warn := attributes.Warn; warn != nil {
		shared.Warn = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			warn(text)
		}
	}
	var calls sync.WaitGroup
	for i, hook := range hooks {
		calls.Go(func() { _, errs[i] = a.callOrIgnore(ctx, hook, &shared, false) })
	}
	calls.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// callOrIgnore returns the response of a webhook if it allows the request. It returns nil if the call failed and the failure policy
// is Ignore.
func (a *Admission) callOrIgnore(ctx context.Context, hook *invocation, attributes *Attributes, mutating bool) (*response, error) {
	if attributes.DryRun && hook.SideEffects != "None" && hook.SideEffects != "NoneOnDryRun" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", hook.Name))
	}
	response, err := a.send(ctx, hook, attributes, mutating)
	if err != nil {
		if ctx.Err() != nil {
			return nil, apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
		}
		return nil, a.failed(hook, &callError{hook.Name, err})
	}
	for _, text := range response.Warnings {
		attributes.Warn(text)
	}
	if !response.Allowed {
		return nil, denied(hook.Name, response.Result)
	}
	return response, nil
}

// failed applies the failure policy.
func (a *Admission) failed(hook *invocation, err *callError) error {
	if hook.FailurePolicy == "Ignore" {
		return nil
	}
	return apierrors.NewInternalError(err)
}

// denied returns the Status of a rejection by a webhook. Its code is at least 400.
func denied(name string, result *metav1.Status) error {
	if result == nil {
		result = &metav1.Status{}
	}
	status := *result
	status.Code = max(status.Code, 400)
	if status.Status == "" || status.Status == metav1.StatusSuccess {
		status.Status = metav1.StatusFailure
	}
	text := fmt.Sprintf("admission webhook %q denied the request", name)
	switch {
	case status.Message != "":
		status.Message = text + ": " + status.Message
	case status.Reason != "":
		status.Message = text + ": " + string(status.Reason)
	default:
		status.Message = text + " without explanation"
	}
	return &apierrors.StatusError{ErrStatus: status}
}

var errNoResponse = errors.New("webhook response was absent")
