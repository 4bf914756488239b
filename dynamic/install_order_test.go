package dynamic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/unstructured"
)

// orderedObject returns an object from APIVERSION/KIND/NAME or APIVERSION/KIND/NAMESPACE/NAME, such as "apps/v1 Deployment shop/web".
func orderedObject(text string, dependsOn ...string) *unstructured.Object {
	fields := strings.Fields(text)
	obj := &unstructured.Object{Object: map[string]any{}}
	obj.SetAPIVersion(fields[0])
	obj.SetKind(fields[1])
	namespace, name, isNamespaced := strings.Cut(fields[2], "/")
	if !isNamespaced {
		name = namespace
		namespace = ""
	}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	if len(dependsOn) > 0 {
		obj.SetAnnotations(map[string]string{"config.kubernetes.io/depends-on": strings.Join(dependsOn, ",")})
	}
	return obj
}

func withSpec(obj *unstructured.Object, spec map[string]any) *unstructured.Object {
	obj.Object["spec"] = spec
	return obj
}

// owned sets the UIDs of an object and of its owner.
func owned(obj *unstructured.Object, uid, owner types.UID) *unstructured.Object {
	obj.SetUID(uid)
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Foo", Name: "parent", UID: owner}})
	return obj
}

// stageNames returns the names of each stage, separated by spaces.
func stageNames(stages [][]*unstructured.Object) (all []string) {
	for _, stage := range stages {
		var names []string
		for _, obj := range stage {
			names = append(names, obj.GetName())
		}
		all = append(all, strings.Join(names, " "))
	}
	return all
}

func TestInstallOrder_Stages(t *testing.T) {
	foos := withSpec(orderedObject("apiextensions.k8s.io/v1 CustomResourceDefinition foos.example.com"),
		map[string]any{"group": "example.com", "names": map[string]any{"kind": "Foo"}})
	metrics := withSpec(orderedObject("apiregistration.k8s.io/v1 APIService v1.metrics.example.com"),
		map[string]any{"group": "metrics.example.com", "version": "v1", "service": map[string]any{"name": "metrics", "namespace": "shop"}})
	for name, tc := range map[string]struct {
		objects []*unstructured.Object
		want    []string
	}{
		"nothing": {nil, nil},
		"owners before dependents": {
			[]*unstructured.Object{
				owned(orderedObject("v1 ConfigMap shop/child"), "2", "1"), owned(orderedObject("example.com/v1 Foo shop/parent"), "1", "unknown"),
			},
			[]string{"parent", "child"},
		},
		"kinds": {[]*unstructured.Object{
			orderedObject("admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration hook"), orderedObject("apps/v1 Deployment shop/web"),
			orderedObject("v1 Service shop/web-service"), orderedObject("rbac.authorization.k8s.io/v1 RoleBinding shop/binding"), orderedObject("v1 Secret shop/secret"),
			orderedObject("rbac.authorization.k8s.io/v1 Role shop/role"), orderedObject("v1 ServiceAccount shop/robot"), orderedObject("v1 Namespace shop"), metrics,
			orderedObject("example.com/v1 Foo shop/foo"), foos, orderedObject("batch/v1 Job shop/job"),
		}, []string{"shop foos.example.com", "role robot", "web-service binding secret", "web foo job", "hook v1.metrics.example.com"}},
		"order of input": {[]*unstructured.Object{orderedObject("v1 ConfigMap b"), orderedObject("v1 Secret a"), orderedObject("v1 ConfigMap a")}, []string{"b a a"}},
		"dependency within a rank": {[]*unstructured.Object{
			orderedObject("apps/v1 Deployment shop/web", "apps/namespaces/shop/Deployment/db"), orderedObject("apps/v1 Deployment shop/db"), orderedObject("v1 Pod shop/other"),
		}, []string{"db other", "web"}},
		"dependency against ranks": {[]*unstructured.Object{
			orderedObject("v1 ConfigMap shop/late", "batch/namespaces/shop/Job/job", " /namespaces/shop/Secret/secret"), orderedObject("batch/v1 Job shop/job"),
			orderedObject("v1 Secret shop/secret"), orderedObject("v1 Pod shop/last", "/namespaces/shop/ConfigMap/late"),
		}, []string{"secret", "job", "late", "last"}},
		"namespace that depends": {[]*unstructured.Object{
			orderedObject("v1 ServiceAccount shop/robot"), orderedObject("v1 Namespace shop", "policies.example.com/Policy/policy"), orderedObject("policies.example.com/v1 Policy policy"),
		}, []string{"policy", "shop", "robot"}},
		"definition that depends": {[]*unstructured.Object{
			orderedObject("example.com/v1 Foo foo"), withSpec(orderedObject("apiextensions.k8s.io/v1 CustomResourceDefinition foos.example.com", "apps/namespaces/shop/Deployment/conversion"), foos.Object["spec"].(map[string]any)),
			orderedObject("apps/v1 Deployment shop/conversion"),
		}, []string{"conversion", "foos.example.com", "foo"}},
		"aggregated API": {[]*unstructured.Object{orderedObject("metrics.example.com/v1 Metric metric"), metrics}, []string{"v1.metrics.example.com", "metric"}},
		"APIServices of the API server itself": {[]*unstructured.Object{
			orderedObject("apps/v1 Deployment shop/web"),
			withSpec(orderedObject("apiregistration.k8s.io/v1 APIService v1.apiregistration.k8s.io"), map[string]any{"group": "apiregistration.k8s.io", "version": "v1"}),
			withSpec(orderedObject("apiregistration.k8s.io/v1 APIService v1.apps"), map[string]any{"group": "apps", "version": "v1"}),
		}, []string{"web", "v1.apiregistration.k8s.io v1.apps"}},
		"default namespace":    {[]*unstructured.Object{orderedObject("v1 Pod a", "/namespaces/home/Pod/b"), orderedObject("v1 Pod b")}, []string{"b", "a"}},
		"missing dependency":   {[]*unstructured.Object{orderedObject("v1 Pod a", "/namespaces/home/Pod/none")}, []string{"a"}},
		"not of the namespace": {[]*unstructured.Object{orderedObject("v1 Pod home/a", "/namespaces/home/Pod/b"), orderedObject("v1 Pod shop/b")}, []string{"a b"}},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := dynamic.InstallOrder(tc.objects, "home")
			require.NoError(t, err)
			assert.Equal(t, tc.want, stageNames(plan.Stages))
		})
	}
}

func TestInstallOrder_Errors(t *testing.T) {
	for want, objects := range map[string][]*unstructured.Object{
		`install order: dependency cycle: Pod "shop/a" → ConfigMap "shop/b" → Deployment.apps "shop/c" → Pod "shop/a"`: {
			orderedObject("v1 Pod shop/start", "/namespaces/shop/Pod/a"), orderedObject("v1 Pod shop/a", "/namespaces/shop/ConfigMap/b"),
			orderedObject("v1 ConfigMap shop/b", "apps/namespaces/shop/Deployment/c"), orderedObject("apps/v1 Deployment shop/c", "/namespaces/shop/Pod/a"),
		},
		`install order: dependency cycle: Pod "shop/a" → Pod "shop/a"`:                                         {orderedObject("v1 Pod shop/a", "/namespaces/shop/Pod/a")},
		`install order: dependency cycle: Namespace "shop" → Pod "shop/a" → Namespace "shop"`:                  {orderedObject("v1 Namespace shop", "/namespaces/shop/Pod/a"), orderedObject("v1 Pod shop/a")},
		`install order: Pod "a": annotation config.kubernetes.io/depends-on: "Pod/b" is neither GROUP/KIND/NA`: {orderedObject("v1 Pod a", "Pod/b")},
		`install order: Pod "a": annotation config.kubernetes.io/depends-on: "/names/shop/Pod/b" is neither`:   {orderedObject("v1 Pod a", "/names/shop/Pod/b")},
		`install order: Pod "a": annotation config.kubernetes.io/depends-on: "" is neither GROUP/KIND/NAME`:    {orderedObject("v1 Pod a", "")},
		`install order: Pod "a": annotation config.kubernetes.io/depends-on: "/Pod/b" occurs twice`:            {orderedObject("v1 Pod a", "/Pod/b", "/Pod/b")},
	} {
		plan, err := dynamic.InstallOrder(objects, "home")
		require.ErrorContains(t, err, want)
		assert.Nil(t, plan)
	}
}

func ExampleInstallOrder() {
	objects := []*unstructured.Object{
		orderedObject("apps/v1 Deployment shop/web", "batch/namespaces/shop/Job/migrate"), orderedObject("batch/v1 Job shop/migrate"),
		orderedObject("v1 ConfigMap shop/settings"), orderedObject("v1 Namespace shop"),
	}
	plan, err := dynamic.InstallOrder(objects, "default")
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, stage := range plan.Stages {
		for _, obj := range stage {
			fmt.Println(i, obj.GetKind(), obj.GetName())
		}
	}
	// Output:
	// 0 Namespace shop
	// 1 ConfigMap settings
	// 2 Job migrate
	// 3 Deployment web
}
