package cel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"

	"github.com/anykind/anykind/apitest"
	"github.com/anykind/anykind/unstructured"
)

// Policies evaluates MutatingAdmissionPolicies and ValidatingAdmissionPolicies like kube-apiserver, for apitest.Options.Policies. A
// policy and its binding are in force with the next write; kube-apiserver needs up to a second. Compiled policies are shared by all
// servers with the same Policies. The zero value is ready to use.
type Policies struct {
	compiled sync.Map // name and JSON of a spec to its evaluator
}

var _ apitest.PolicyEvaluator = &Policies{}

// excluded are the resources of requests that kube-apiserver excludes from admission by policies.
var excluded = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}, {Group: "authentication.k8s.io", Resource: "tokenreviews"},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}, {Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}, {Group: "authorization.k8s.io", Resource: "subjectaccessreviews"},
}

// Mutate evaluates the MutatingAdmissionPolicies. If a policy changes the object, all with reinvocationPolicy IfNeeded are evaluated
// a second time.
func (p *Policies) Mutate(ctx context.Context, stored apitest.PolicyReader, request *apitest.AdmissionRequest) error {
	if isExcluded(request) {
		return nil
	}
	hooks, err := readPolicies(ctx, stored, "MutatingAdmissionPolicy", mutating.NewMutatingAdmissionPolicyAccessor,
		mutating.NewMutatingAdmissionPolicyBindingAccessor, func(policy *admissionv1.MutatingAdmissionPolicy) mutating.PolicyEvaluator {
			return compiledOnce(p, policy.Name, policy.Spec, func() mutating.PolicyEvaluator { return compileMutating(policy) })
		})
	if err != nil || len(hooks) == 0 {
		return err
	}
	server := &server{ctx, stored}
	dispatcher := mutating.NewDispatcher(server, server.matcher(), server)
	attributes := attributesOf(request)
	ctx = withWarnings(ctx, request)
	if err := dispatcher.Dispatch(ctx, attributes, server, hooks); err != nil {
		return err
	}
	if again := attributes.GetReinvocationContext(); again.ShouldReinvoke() {
		again.SetIsReinvoke()
		if err := dispatcher.Dispatch(ctx, attributes, server, hooks); err != nil {
			return err
		}
	}
	if obj, ok := attributes.GetObject().(*unstructuredv1.Unstructured); ok {
		request.Object = &unstructured.Object{Object: obj.Object}
	}
	return nil
}

// Validate evaluates the ValidatingAdmissionPolicies.
func (p *Policies) Validate(ctx context.Context, stored apitest.PolicyReader, request *apitest.AdmissionRequest) error {
	if isExcluded(request) {
		return nil
	}
	hooks, err := readPolicies(ctx, stored, "ValidatingAdmissionPolicy", validating.NewValidatingAdmissionPolicyAccessor,
		validating.NewValidatingAdmissionPolicyBindingAccessor, func(policy *admissionv1.ValidatingAdmissionPolicy) validating.Validator {
			return compiledOnce(p, policy.Name, policy.Spec, func() validating.Validator { return compileValidating(policy) })
		})
	if err != nil || len(hooks) == 0 {
		return err
	}
	server := &server{ctx, stored}
	dispatcher := validating.NewDispatcher(server, generic.NewPolicyMatcher(server.matcher()))
	return dispatcher.Dispatch(withWarnings(ctx, request), attributesOf(request), server, hooks)
}

func isExcluded(request *apitest.AdmissionRequest) bool {
	return slices.Contains(excluded, request.Resource.GroupResource())
}

// compiledOnce returns the evaluator of a policy.
func compiledOnce[E any](p *Policies, name string, spec any, compile func() E) E {
	text, err := json.Marshal(spec)
	if err != nil {
		return compile()
	}
	key := name + string(text)
	if found, ok := p.compiled.Load(key); ok {
		if evaluator, ok := found.(E); ok {
			return evaluator
		}
	}
	evaluator := compile()
	p.compiled.Store(key, evaluator)
	return evaluator
}

// readPolicies returns the stored policies that have bindings, with their bindings and parameters, ordered by name.
func readPolicies[P, B, E any, PP pointer[P], PB pointer[B]](ctx context.Context, stored apitest.PolicyReader, kind string,
	policyAccessor func(PP) generic.PolicyAccessor, bindingAccessor func(PB) generic.BindingAccessor, compile func(PP) E,
) ([]generic.PolicyHook[PP, PB, E], error) {
	policies, err := readTyped[P, PP](ctx, stored, kind)
	if err != nil || len(policies) == 0 {
		return nil, err
	}
	bindings, err := readTyped[B, PB](ctx, stored, kind+"Binding")
	if err != nil {
		return nil, err
	}
	var hooks []generic.PolicyHook[PP, PB, E]
	for _, policy := range policies {
		accessor := policyAccessor(policy)
		hook := generic.PolicyHook[PP, PB, E]{Policy: policy}
		for _, binding := range bindings {
			if bindingAccessor(binding).GetPolicyName().Name == accessor.GetName() {
				hook.Bindings = append(hook.Bindings, binding)
			}
		}
		if len(hook.Bindings) == 0 {
			continue
		}
		if kind := accessor.GetParamKind(); kind != nil {
			informer, scope, err := newParameters(ctx, stored, kind)
			hook.ConfigurationError = err
			if err == nil {
				hook.ParamInformer = informer
				hook.ParamScope = scope
			}
		}
		hook.Evaluator = compile(policy)
		hooks = append(hooks, hook)
	}
	return hooks, nil
}

// pointer is the pointer type of an API type.
type pointer[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

func readTyped[T any, P pointer[T]](ctx context.Context, stored apitest.PolicyReader, kind string) ([]P, error) {
	objects, err := stored.List(ctx, admissionv1.SchemeGroupVersion.WithKind(kind), "")
	if err != nil {
		return nil, err
	}
	all := make([]P, len(objects))
	for i, obj := range objects {
		all[i] = new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, all[i]); err != nil {
			return nil, fmt.Errorf("decode %s %q: %w", kind, obj.GetName(), err)
		}
	}
	slices.SortFunc(all, func(a, b P) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, nil
}

// attributesOf converts a request to the API server's form.
func attributesOf(request *apitest.AdmissionRequest) admission.Attributes {
	asRuntime := func(obj *unstructured.Object) runtime.Object {
		if obj == nil {
			return nil
		}
		return &unstructuredv1.Unstructured{Object: obj.Object}
	}
	sender := &user.DefaultInfo{Name: request.User.Name, UID: request.User.UID, Groups: request.User.Groups, Extra: request.User.Extra}
	return admission.NewAttributesRecord(asRuntime(request.Object), asRuntime(request.OldObject), request.Kind, request.Namespace, request.Name,
		request.Resource, request.Subresource, admission.Operation(request.Operation), request.Options, request.DryRun, sender)
}

// withWarnings sends warnings of policies to the response of a request.
func withWarnings(ctx context.Context, request *apitest.AdmissionRequest) context.Context {
	return warning.WithWarningRecorder(ctx, recorder{request})
}

type recorder struct{ request *apitest.AdmissionRequest }

func (r recorder) AddWarning(_, text string) {
	if r.request.Warn != nil {
		r.request.Warn(text)
	}
}

// matcher returns the API server's matcher of namespaces, objects and resources. It needs no client, because namespaceLister never
// returns NotFound.
func (s *server) matcher() *matching.Matcher { return matching.NewMatcher(namespaceLister{s}, nil) }

var errNoNamespace = errors.New("the namespace does not exist")
