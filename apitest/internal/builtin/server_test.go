package builtin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/testing/compare"
	"github.com/anykind/anykind/apitest/internal/testing/realserver"
)

// realServer creates objects on the sandbox as a dry run.
type realServer struct {
	*realserver.Server
	namespace string
	resources map[schema.GroupVersionKind]resource
}

type resource struct {
	schema.GroupVersionResource
	namespaced bool
}

func newRealServer(t *testing.T) *realServer {
	sandbox := compare.Sandbox(t)
	resources, err := sandbox.PreferredResources(t.Context(), nil)
	require.NoError(t, err)
	s := &realServer{sandbox.Requests, sandbox.Namespace, map[schema.GroupVersionKind]resource{}}
	for _, r := range resources {
		served := r.APIResource()
		s.resources[served.GVK] = resource{served.GVR, served.Namespaced}
	}
	return s
}

// create returns the response of the real server to a dry-run creation.
func (s *realServer) create(t *testing.T, r resource, obj map[string]any) realserver.Response {
	path := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	if r.namespaced {
		path += "/namespaces/" + s.namespace
	}
	return s.Write(t, http.MethodPost, path+"/"+r.Resource, url.Values{"dryRun": {"All"}, "fieldValidation": {"Ignore"}}, obj)
}

// create returns this package's result.
func create(t *testing.T, r resource, gvk schema.GroupVersionKind, namespace string, given map[string]any) realserver.Response {
	decoded, _, err := builtin.Decode(gvk, given)
	if err != nil {
		return realserver.Response{Message: fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, gvk.Kind, err)}
	}
	builtin.Default(gvk, decoded)
	builtin.Admit(r.GroupResource(), decoded)
	u := unstructuredv1.Unstructured{Object: decoded}
	u.SetNamespace("")
	if r.namespaced {
		u.SetNamespace(namespace)
	}
	u.SetUID("00000000-aaaa-bbbb-cccc-000000000000")
	builtin.PrepareForCreate(r.GroupResource(), decoded)
	var errs field.ErrorList
	if gvk.Kind == "Service" {
		errs = builtin.AllocateService(decoded, nil, slices.Values([]map[string]any(nil)))
	}
	failed, notValidated := builtin.Validate(r.GroupResource(), "", decoded, nil)
	errs = append(errs, failed...)
	if len(errs) > 0 {
		return realserver.ResponseOf(t, apierrors.NewInvalid(gvk.GroupKind(), u.GetName(), errs))
	}
	decoded, _, err = builtin.Decode(gvk, decoded)
	require.NoError(t, err)
	return realserver.Response{Object: decoded, Warnings: notValidated}
}

// normalize removes what two servers do not have in common.
func normalize(a realserver.Response) realserver.Response {
	a = realserver.Normalize(a)
	if status, ok := a.Object["status"].(map[string]any); ok {
		delete(status, "lastPhaseTransitionTime")
	}
	if spec, ok := a.Object["spec"].(map[string]any); ok && a.Object["kind"] == "Service" {
		for _, name := range []string{"clusterIP", "clusterIPs"} {
			if spec[name] != nil && !strings.Contains(fmt.Sprint(spec[name]), "None") {
				spec[name] = "allocated"
			}
		}
		ports, _ := spec["ports"].([]any)
		for _, port := range ports {
			delete(port.(map[string]any), "nodePort") // a dry run's is beyond the range
		}
	}
	return a
}
