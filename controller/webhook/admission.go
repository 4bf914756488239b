package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/unstructured"
)

// Operation is the operation of an admission request.
type Operation string

// The operations of admission requests.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Request is an admission request for objects of type T. It is valid until the function returns, and not for concurrent use.
type Request[T any] struct {
	UID types.UID
	// Operation is the kind of the request. A connect has the options as Object.
	Operation Operation
	// Kind, Resource and Subresource are those of Object. The server converts Object to them, so the client's request may name a
	// different version: RequestKind.
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	RequestKind schema.GroupVersionKind
	// Name and Namespace are those of the request. Name is "" for a create with generateName.
	Name      string
	Namespace string
	User      User
	// DryRun reports that nothing is stored: the function must have no side effects.
	DryRun bool
	// Object is the new state, nil for a delete. OldObject is the state before an update or a delete, nil otherwise.
	Object    *T
	OldObject *T

	warnings []string
	audit    map[string]string
}

// User is the authenticated user of a request.
type User struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

// Warn adds a warning for the client. The server truncates warnings over 256 characters.
func (r *Request[T]) Warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// Audit adds an annotation to the audit event of the request. The server prefixes key with the webhook's name.
func (r *Request[T]) Audit(key, value string) {
	if r.audit == nil {
		r.audit = map[string]string{}
	}
	r.audit[key] = value
}

// admissionRequest is the request of an AdmissionReview of admission.k8s.io/v1.
type admissionRequest struct {
	UID         types.UID                   `json:"uid"`
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	RequestKind *metav1.GroupVersionKind    `json:"requestKind"`
	Name        string                      `json:"name"`
	Namespace   string                      `json:"namespace"`
	Operation   Operation                   `json:"operation"`
	UserInfo    User                        `json:"userInfo"`
	Object      json.RawMessage             `json:"object"`
	OldObject   json.RawMessage             `json:"oldObject"`
	DryRun      *bool                       `json:"dryRun"`
}

// admissionResponse is the response of an AdmissionReview of admission.k8s.io/v1.
type admissionResponse struct {
	UID              types.UID         `json:"uid"`
	Allowed          bool              `json:"allowed"`
	Status           *metav1.Status    `json:"status,omitempty"`
	Patch            []byte            `json:"patch,omitempty"`
	PatchType        string            `json:"patchType,omitempty"`
	Warnings         []string          `json:"warnings,omitempty"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
}

// Validate returns a validating webhook. An error of f rejects the request, with its text as the message. An apierrors.APIStatus,
// such as of apierrors.NewInvalid, keeps its code, reason and details; other errors have the code 403. An error after the end of ctx
// has the code 504.
//
// ctx ends after the timeout of the server's configuration. A panic rejects the request with the code 500, whatever the failurePolicy;
// its value is not sent. f is called concurrently.
func Validate[T any](f func(ctx context.Context, r *Request[T]) error, opts *Options) http.Handler {
	return admissionHandler(opts, func(ctx context.Context, r *Request[T], _ *unstructured.Object) ([]operation, error) {
		return nil, f(ctx, r)
	})
}

// Mutate returns a mutating webhook. f returns the changed object: r.Object itself or a new object. nil changes nothing. An error
// rejects the request, see [Validate].
//
// The JSON patch has the changes made by f alone. Fields unknown to a struct T are kept, also in list elements that are equal, have the
// same name, or have the same index in a list of the same length. A change of a delete is an error.
func Mutate[T any](f func(ctx context.Context, r *Request[T]) (*T, error), opts *Options) http.Handler {
	return admissionHandler(opts, func(ctx context.Context, r *Request[T], sent *unstructured.Object) ([]operation, error) {
		var before *unstructured.Object
		if r.Object != nil {
			var err error
			if before, err = unstructured.From(r.Object); err != nil {
				return nil, err
			}
		}
		changed, err := f(ctx, r)
		switch {
		case err != nil || changed == nil:
			return nil, err
		case sent == nil:
			return nil, apierrors.NewInternalError(fmt.Errorf("the webhook changed an object of the operation %s, which has none", r.Operation))
		}
		after, err := unstructured.From(changed)
		if err != nil {
			return nil, err
		}
		merged := merge(sent.Object, before.Object, after.Object)
		return difference(nil, "", sent.Object, merged), nil
	})
}

// admissionHandler returns a webhook of a function. sent is r.Object as sent by the server.
func admissionHandler[T any](opts *Options, f func(ctx context.Context, r *Request[T], sent *unstructured.Object) ([]operation, error)) http.Handler {
	return newHandler("admission.k8s.io", "AdmissionReview", opts, defaultMaxAdmission, func(ctx context.Context, r *admissionRequest) outcome[admissionResponse] {
		response := &admissionResponse{UID: r.UID}
		out := outcome[admissionResponse]{uid: r.UID, response: response, code: http.StatusOK}
		request, operations, err := admit(ctx, r, f)
		if request != nil {
			response.Warnings = request.warnings
			response.AuditAnnotations = maps.Clone(request.audit)
		}
		if err == nil && len(operations) > 0 {
			response.PatchType = "JSONPatch"
			response.Patch, err = json.Marshal(operations)
		}
		if err != nil {
			response.Patch = nil
			response.PatchType = ""
			response.Status = statusOf(ctx, err, http.StatusForbidden, metav1.StatusReasonForbidden)
			out.code = int(response.Status.Code)
			out.err = err
			return out
		}
		response.Allowed = true
		return out
	})
}

// admit decodes a request and calls f. request is nil if it cannot be decoded.
func admit[T any](ctx context.Context, r *admissionRequest, f func(context.Context, *Request[T], *unstructured.Object) ([]operation, error)) (request *Request[T], operations []operation, err error) {
	object, sent, err := decode[T]("object", r.Object)
	if err != nil {
		return nil, nil, err
	}
	oldObject, _, err := decode[T]("oldObject", r.OldObject)
	if err != nil {
		return nil, nil, err
	}
	request = &Request[T]{
		UID: r.UID, Operation: r.Operation, Kind: schema.GroupVersionKind(r.Kind), Resource: schema.GroupVersionResource(r.Resource),
		Subresource: r.SubResource, RequestKind: schema.GroupVersionKind(*cmp.Or(r.RequestKind, &r.Kind)),
		Name: r.Name, Namespace: r.Namespace, User: r.UserInfo, DryRun: r.DryRun != nil && *r.DryRun,
		Object: object, OldObject: oldObject,
	}
	defer contain(&err, fmt.Sprintf("the webhook, for %s %s %s/%s", request.Operation, request.Kind.Kind, request.Namespace, request.Name))
	operations, err = f(ctx, request, sent)
	return request, operations, err
}

// decode returns an object of a review as T and as sent; both are nil without an object.
func decode[T any](field string, data json.RawMessage) (*T, *unstructured.Object, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil, nil
	}
	sent, err := unstructured.Decode(data)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("decode %s: %v", field, err))
	}
	object, err := unstructured.As[T](sent.DeepCopy())
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("decode %s: %v", field, err))
	}
	return object, sent, nil
}
