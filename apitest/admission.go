package apitest

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/admission"
	"github.com/anykind/anykind/unstructured"
)

// AdmissionFunc is an admission plugin of a test. An error rejects the request: an APIStatus error with its Status, other errors
// with 403.
type AdmissionFunc func(ctx context.Context, request *AdmissionRequest) error

// AdmissionRequest is a write for admission to change or reject.
type AdmissionRequest struct {
	Operation   string // CREATE, UPDATE or DELETE
	Resource    schema.GroupVersionResource
	Kind        schema.GroupVersionKind // of Object: Scale with the subresource scale
	Subresource string
	Namespace   string
	Name        string
	User        User
	DryRun      bool
	// Object is the object to be written, nil in a deletion. A function of Options.Mutate may change it in place.
	Object *unstructured.Object
	// OldObject is the replaced or deleted object, nil in a creation. It is read-only.
	OldObject *unstructured.Object
	// Options are *metav1.CreateOptions, UpdateOptions or DeleteOptions.
	Options runtime.Object
	// Warn adds a warning to the response.
	Warn func(text string)
}

func (s *Server) newAdmission() *admission.Admission {
	mutateByPolicies, validateByPolicies := s.policies()
	return admission.New(admission.Config{
		Mutate: admissionFuncs(s.options.Mutate, true), Validate: admissionFuncs(s.options.Validate, false),
		MutateByPolicies: mutateByPolicies, ValidateByPolicies: validateByPolicies,
		Store: s.store, Registry: s.registry, Access: s.access, ServiceURL: s.options.ServiceURL, DisableWebhooks: s.options.DisableWebhooks,
	})
}

func admissionFuncs(functions []AdmissionFunc, mayChange bool) []admission.Func {
	var adapted []admission.Func
	for _, f := range functions {
		adapted = append(adapted, admissionFunc(f, mayChange))
	}
	return adapted
}

func admissionFunc(f AdmissionFunc, mayChange bool) admission.Func {
	return func(ctx context.Context, attributes *admission.Attributes) error {
		request := admissionRequest(attributes)
		if err := f(ctx, request); err != nil {
			return err
		}
		if mayChange && request.Object != nil {
			attributes.Object = request.Object.Object
		}
		return nil
	}
}

func admissionRequest(a *admission.Attributes) *AdmissionRequest {
	request := &AdmissionRequest{
		Operation: string(a.Operation), Resource: a.Resource.GroupVersionResource(), Kind: a.Kind, Subresource: a.Subresource,
		Namespace: a.Namespace, Name: a.Name, DryRun: a.DryRun, Options: a.Options, Warn: a.Warn,
		User: User{Name: a.User.Name, UID: a.User.UID, Groups: a.User.Groups, Extra: a.User.Extra},
	}
	if a.Object != nil {
		request.Object = &unstructured.Object{Object: a.Object}
	}
	if a.OldObject != nil {
		request.OldObject = &unstructured.Object{Object: a.OldObject}
	}
	return request
}
