package applyset_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
)

const two = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {a: a, b: b}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
data: {a: a}
`

const one = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: x}}"

// names returns the names of the ConfigMaps in the namespace, without that of the cluster's certificate.
func (e *environment) names(t *testing.T) []string {
	t.Helper()
	var names []string
	for obj, err := range client.Resource(t, e.Client, "configmaps").Namespace(e.namespace).List(t.Context(), nil) {
		require.NoError(t, err)
		if obj.GetName() != "kube-root-ca.crt" {
			names = append(names, obj.GetName())
		}
	}
	return names
}

func (e *environment) configMap(t *testing.T, name string) *unstructured.Object {
	t.Helper()
	obj, err := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace).Get(t.Context(), name, nil)
	require.NoError(t, err)
	return obj
}

func (e *environment) data(t *testing.T, name string) map[string]any {
	t.Helper()
	data, _, err := unstructured.Get[map[string]any](e.configMap(t, name), "data")
	require.NoError(t, err)
	return data
}

// references names ConfigMaps of the namespace.
func (e *environment) references(names ...string) (all []applyset.Reference) {
	for _, name := range names {
		all = append(all, applyset.Reference{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: e.namespace, Name: name})
	}
	return all
}

func kubectlVersion(t *testing.T) string {
	t.Helper()
	return "v" + cluster.Version(t).String()
}

// TestSet_AdoptAndHandOver moves a set of kubectl apply --prune --applyset to the library and back, in both modes of kubectl. Each
// side then removes a field and prunes an object that the other has applied.
func TestSet_AdoptAndHandOver(t *testing.T) {
	for _, mode := range []string{"--server-side ", ""} {
		t.Run("kubectl apply "+mode, func(t *testing.T) {
			e := newEnvironment(t)
			set := e.set("shop")
			e.kubectl(t, e.namespace, "apply "+mode+"--prune --applyset=shop -f -", two)
			_, err := set.Apply(t.Context(), e.objects(t, one), nil)
			require.ErrorContains(t, err, fmt.Sprintf("is managed by tooling %q", "kubectl/"+kubectlVersion(t)))

			events, err := set.Adopt(t.Context(), e.objects(t, one), nil)
			require.NoError(t, err)
			assert.ElementsMatch(t, []string{"configured ConfigMap a", "configured ConfigMap b"}, outcomes(events))
			assert.Equal(t, map[string]any{"a": "a", "b": "b"}, e.data(t, "a"), "Adopt changes no field")
			assert.NotContains(t, e.configMap(t, "a").GetAnnotations(), "kubectl.kubernetes.io/last-applied-configuration")
			events, err = set.Apply(t.Context(), e.objects(t, one), nil)
			require.NoError(t, err)
			assert.ElementsMatch(t, []string{"configured ConfigMap a", "pruned ConfigMap b"}, outcomes(events))
			assert.Equal(t, map[string]any{"a": "x"}, e.data(t, "a"))

			_, err = set.Apply(t.Context(), e.objects(t, two), nil)
			require.NoError(t, err)
			events, err = set.Handover(t.Context(), kubectlVersion(t))
			require.NoError(t, err)
			assert.ElementsMatch(t, []string{"configured ConfigMap a", "configured ConfigMap b"}, outcomes(events))
			_, err = set.Handover(t.Context(), kubectlVersion(t))
			require.ErrorContains(t, err, "call Adopt")
			output := e.kubectl(t, e.namespace, "apply --server-side --prune --applyset=shop -f -", one)
			assert.Contains(t, output, "configmap/b pruned")
			assert.NotContains(t, output, "conflict")
			assert.Equal(t, map[string]any{"a": "x"}, e.data(t, "a"))
			assert.Equal(t, []string{"a"}, e.names(t))

			_, err = set.Adopt(t.Context(), nil, nil)
			require.NoError(t, err)
			events, err = set.Apply(t.Context(), e.objects(t, one), nil)
			require.NoError(t, err)
			assert.Equal(t, []string{"unchanged ConfigMap a"}, outcomes(events), "the fields are those of the set again")
			_, err = set.Delete(t.Context(), nil)
			require.NoError(t, err)
			assert.Empty(t, e.names(t))
		})
	}
}

func TestSet_HandoverWithoutParent(t *testing.T) {
	e := newEnvironment(t)
	_, err := e.set("shop").Handover(t.Context(), kubectlVersion(t))
	assert.ErrorContains(t, err, "the parent does not exist")
}

// TestSet_AdoptMembers adopts objects of a previous tool that left the manifests.
func TestSet_AdoptMembers(t *testing.T) {
	e := newEnvironment(t)
	objects := e.objects(t, one)
	e.kubectl(t, e.namespace, "apply -f -", two+`---
{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: kept-too, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: others, labels: {applyset.kubernetes.io/part-of: other}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}}
`)
	owner := e.configMap(t, "a")
	e.kubectl(t, e.namespace, "create -f -", fmt.Sprintf(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owned","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":%q}]}}`, owner.GetUID()))
	opts := &applyset.AdoptOptions{Members: append(
		e.references("a", "b", "kept", "kept-too", "owned", "missing"),
		applyset.Reference{Kind: schema.GroupKind{Group: "example.com", Kind: "Unknown"}, Name: "unknown"},
	)}
	want := []string{
		"configured ConfigMap a", "configured ConfigMap b", "kept ConfigMap kept", "kept ConfigMap kept-too", "kept ConfigMap owned",
		"unchanged ConfigMap missing", "unchanged Unknown unknown",
	}
	set := e.set("shop")

	before := e.configMap(t, "b")
	opts.DryRun = true
	e.requests.reset()
	events, err := set.Adopt(t.Context(), objects, opts)
	require.NoError(t, err)
	assert.ElementsMatch(t, want, outcomes(events))
	assert.Equal(t, before, e.configMap(t, "b"))
	assert.Len(t, writes(e.requests.reset()), 2, "dry runs of both objects")
	opts.DryRun = false

	var reported []applyset.Event
	opts.OnEvent = func(event applyset.Event) { reported = append(reported, event) }
	events, err = set.Adopt(t.Context(), objects, opts)
	require.NoError(t, err)
	assert.ElementsMatch(t, want, outcomes(events))
	assert.Equal(t, events, reported)
	reasons := map[string]string{}
	for _, event := range events {
		reasons[event.Object.Name] = event.Reason
	}
	assert.Equal(t, map[string]string{
		"a": "", "b": "", "kept": "its annotation helm.sh/resource-policy is keep",
		"kept-too": "its annotation kustomize.toolkit.fluxcd.io/prune is disabled", "owned": `it has the owner ConfigMap "a"`,
		"missing": "it does not exist", "unknown": "it does not exist",
	}, reasons)

	e.requests.reset()
	events, err = set.Adopt(t.Context(), objects, opts)
	require.NoError(t, err)
	assert.NotContains(t, strings.Join(outcomes(events), " "), "configured")
	assert.Empty(t, writes(e.requests.reset()))

	opts.Members = e.references("others")
	_, err = set.Adopt(t.Context(), objects, opts)
	var owned *applyset.OwnedError
	require.ErrorAs(t, err, &owned)
	assert.Equal(t, "other", owned.ID)
	opts.Members = []applyset.Reference{{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: e.namespace, Name: "shop"}}
	_, err = set.Adopt(t.Context(), objects, opts)
	require.ErrorContains(t, err, "it is the parent of the set")

	events, err = set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	assert.Contains(t, outcomes(events), "pruned ConfigMap b")
	assert.Len(t, events, 2)
	assert.Equal(t, []string{"a", "foreign", "kept", "kept-too", "others", "owned"}, e.names(t))
}

// interceptor calls before with each request.
type interceptor struct {
	http.RoundTripper

	before func(*http.Request)
}

func (i *interceptor) RoundTrip(r *http.Request) (*http.Response, error) {
	i.before(r)
	return i.RoundTripper.RoundTrip(r)
}

// TestSet_AdoptDuringOtherWrites changes the object between the read and the write of Adopt, three times.
func TestSet_AdoptDuringOtherWrites(t *testing.T) {
	e := newEnvironment(t)
	e.kubectl(t, e.namespace, "apply -f -", one)
	writer := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
	conflicts := 0
	intercept := &interceptor{before: func(r *http.Request) {
		if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, "/configmaps/a") || conflicts == 3 {
			return
		}
		conflicts++
		patch := fmt.Appendf(nil, `{"data":{"other":"%d"}}`, conflicts)
		_, err := writer.Patch(t.Context(), "a", types.MergePatchType, patch, &metav1.PatchOptions{FieldManager: "other"})
		assert.NoError(t, err)
	}}
	intercepted := client.Connect(t, "admin", func(cfg *transport.Config) {
		cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			intercept.RoundTripper = next
			return intercept
		}
	})
	set := applyset.New(intercepted, applyset.Parent{Namespace: e.namespace, Name: "shop"}, nil)
	_, err := set.Adopt(t.Context(), e.objects(t, one), nil)
	require.NoError(t, err)
	assert.Equal(t, 3, conflicts)
	_, err = set.Apply(t.Context(), e.objects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: b}}"), nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"b": "b", "other": "3"}, e.data(t, "a"))
}

// TestSet_AdoptConvergesAfterKill kills the process at every request of Adopt and of Handover. The same call in a new process then
// completes, and no object is lost.
func TestSet_AdoptConvergesAfterKill(t *testing.T) {
	adopt := func(t *testing.T, e *environment, set *applyset.Set) error {
		t.Helper()
		_, err := set.Adopt(t.Context(), e.objects(t, one), &applyset.AdoptOptions{Members: e.references("c")})
		return err
	}
	handOver := func(t *testing.T, _ *environment, set *applyset.Set) error {
		t.Helper()
		_, err := set.Handover(t.Context(), kubectlVersion(t))
		return err
	}
	all := newEnvironment(t)
	for name, call := range map[string]func(*testing.T, *environment, *applyset.Set) error{"adopt": adopt, "hand over": handOver} {
		t.Run(name, func(t *testing.T) {
			for kills := 0; ; kills++ {
				e := all.within(client.NewNamespace(t, all.Client))
				set := e.set("shop")
				e.kubectl(t, e.namespace, "apply --server-side --prune --applyset=shop -f -", two)
				e.kubectl(t, e.namespace, "create configmap c --from-literal=a=a", "")
				if name != "adopt" {
					require.NoError(t, adopt(t, e, set))
				}
				kill := &killer{lastSent: kills%2 == 0}
				kill.left.Store(int64(kills))
				doomed := client.Connect(t, "admin", func(cfg *transport.Config) {
					cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
						kill.next = next
						return kill
					}
				})
				kill.armed.Store(true)
				parent := applyset.Parent{Namespace: e.namespace, Name: "shop"}
				killed := call(t, e, applyset.New(doomed, parent, &applyset.Options{LockDuration: 150 * time.Millisecond})) != nil
				if err := afterKill(func() error { return call(t, e, set) }); err != nil { // the killed Handover was complete
					require.ErrorContains(t, err, fmt.Sprintf("managed by tooling %q", "kubectl/"+kubectlVersion(t)), "after kill %d", kills)
				}
				if name == "adopt" {
					_, err := set.Apply(t.Context(), e.objects(t, one), nil)
					require.NoError(t, err, "after kill %d", kills)
				} else {
					e.kubectl(t, e.namespace, "apply --server-side --prune --applyset=shop -f -", one)
				}
				require.Equal(t, []string{"a"}, e.names(t), "after kill %d", kills)
				require.Equal(t, map[string]any{"a": "x"}, e.data(t, "a"), "after kill %d", kills)
				if !killed {
					require.Positive(t, kills)
					t.Logf("%d kills", kills)
					return
				}
			}
		})
	}
}

// TestServer_OneApplyEntryOfAManager shows why a migration unites versions: of two Apply entries of a manager in different versions,
// the API server drops one.
func TestServer_OneApplyEntryOfAManager(t *testing.T) {
	e := newEnvironment(t)
	e.kubectl(t, e.namespace, "apply -f -", autoscalerV1)
	autoscalers := client.Resource(t, e.Client, "horizontalpodautoscalers").Namespace(e.namespace)
	entry := func(version, fields string) string {
		return `{"manager":"m","operation":"Apply","apiVersion":"autoscaling/` + version + `","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{` + fields + `}}}`
	}
	patch := `{"metadata":{"managedFields":[` + entry("v1", `"f:minReplicas":{}`) + "," + entry("v2", `"f:maxReplicas":{}`) + `]}}`
	stored, err := autoscalers.Patch(t.Context(), "web", types.MergePatchType, []byte(patch), nil)
	require.NoError(t, err)
	require.Len(t, stored.GetManagedFields(), 1)
	assert.Equal(t, "autoscaling/v2", stored.GetManagedFields()[0].APIVersion, "the last entry")
}

// TestSet_AdoptNamedManagers takes over the replicas of an autoscaler, and an object without managedFields.
func TestSet_AdoptNamedManagers(t *testing.T) {
	e := newEnvironment(t)
	set := e.set("shop")
	e.run(t, []step{{"apply -f -", web}, {`patch deployment web --subresource=scale --field-manager=autoscaler --type=merge -p {"spec":{"replicas":9}}`, ""}})
	objects := e.objects(t, webAfter)
	_, err := set.Adopt(t.Context(), objects, &applyset.AdoptOptions{Managers: applyset.Managers("kubectl-client-side-apply", "autoscaler")})
	require.NoError(t, err)
	events, err := set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	require.Len(t, events, 1)
	replicas, _, err := unstructured.Get[int64](events[0].Live, "spec", "replicas")
	require.NoError(t, err)
	assert.Equal(t, int64(1), replicas, "the default")

	e.run(t, []step{{"apply -f -", two}})
	_, err = set.Adopt(t.Context(), e.objects(t, two), &applyset.AdoptOptions{Managers: applyset.Managers("nobody")})
	require.NoError(t, err)
	assert.Contains(t, e.configMap(t, "b").GetAnnotations(), "kubectl.kubernetes.io/last-applied-configuration", "its owner is not selected")

	e.run(t, []step{{"apply -f -", one}, {`patch configmap a --type=merge -p {"metadata":{"managedFields":[{}]}}`, ""}})
	objects = e.objects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: b}}")
	_, err = set.Apply(t.Context(), objects, &applyset.ApplyOptions{NoPrune: true})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "x", "b": "b"}, e.data(t, "a"))
	_, err = set.Adopt(t.Context(), objects, &applyset.AdoptOptions{Managers: applyset.Managers("before-first-apply")})
	require.NoError(t, err)
	_, err = set.Apply(t.Context(), objects, &applyset.ApplyOptions{NoPrune: true})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"b": "b"}, e.data(t, "a"))
}

// TestSet_AdoptVersionsNoLongerServed adopts an object after its version was removed. The API server drops entries of such a version
// at the next write.
func TestSet_AdoptVersionsNoLongerServed(t *testing.T) {
	for name, patch := range map[string]string{
		"not served": `[{"op":"replace","path":"/spec/versions/1/served","value":false}]`,
		"removed":    `[{"op":"remove","path":"/spec/versions/1"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t)
			e.define(t, definitions)
			group := e.namespace + ".example.com"
			clock := func(version, spec string) string {
				return "{apiVersion: " + group + "/" + version + ", kind: Clock, metadata: {name: clock}, spec: " + spec + "}"
			}
			e.kubectl(t, e.namespace, "apply -f -", clock("v1beta1", "{hours: 12, zone: utc, hands: [a]}"))
			resource := client.Resource(t, e.Client, "customresourcedefinitions")
			_, err := resource.Patch(t.Context(), "clocks."+group, types.JSONPatchType, []byte(patch), nil)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				_, err := e.Discovery().Refresh(t.Context())
				require.NoError(t, err)
				_, err = e.ForKind(t.Context(), schema.GroupVersionKind{Group: group, Version: "v1beta1", Kind: "Clock"})
				return err != nil
			}, 30*time.Second, 100*time.Millisecond)
			set := e.set("shop")
			objects := e.objects(t, clock("v1", "{hours: 12}"))
			_, err = set.Adopt(t.Context(), objects, nil)
			require.NoError(t, err)
			events, err := set.Apply(t.Context(), objects, nil)
			require.NoError(t, err)
			spec, _, err := unstructured.Get[map[string]any](events[0].Live, "spec")
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"hours": int64(12)}, spec)
		})
	}
}

func TestHelmRelease_NewestRevision(t *testing.T) {
	e := newEnvironment(t)
	store := func(name, revision, status, manifest string) {
		var compressed bytes.Buffer
		writer := gzip.NewWriter(&compressed)
		require.NoError(t, json.NewEncoder(writer).Encode(map[string]any{"name": "shop", "manifest": manifest}))
		require.NoError(t, writer.Close())
		release := base64.StdEncoding.EncodeToString(compressed.Bytes())
		_, err := client.Resource(t, e.Client, "secrets").Namespace(e.namespace).Create(t.Context(), &unstructured.Object{Object: map[string]any{
			"metadata":   map[string]any{"name": name, "labels": map[string]any{"owner": "helm", "name": "shop", "status": status, "version": revision}},
			"stringData": map[string]any{"release": release}, "type": "helm.sh/release.v1",
		}}, nil)
		require.NoError(t, err)
	}
	_, err := applyset.HelmRelease(t.Context(), e.Client, e.namespace, "shop")
	require.ErrorContains(t, err, "no deployed revision")
	store("sh.helm.release.v1.shop.v2", "2", "deployed", "---\n# Source: a.yaml\n{apiVersion: v1, kind: ConfigMap, metadata: {name: old}}\n")
	store("sh.helm.release.v1.shop.v10", "10", "deployed", "---\n# Source: a.yaml\n"+two+`---
{apiVersion: v1, kind: Namespace, metadata: {name: more}}
---
{apiVersion: example.com/v1, kind: Unknown, metadata: {name: unknown}}
---
{apiVersion: v1, kind: Secret, metadata: {name: password, namespace: more}}
`)
	store("sh.helm.release.v1.shop.v11", "11", "failed", "broken: [")
	references, err := applyset.HelmRelease(t.Context(), e.Client, e.namespace, "shop")
	require.NoError(t, err)
	assert.Equal(t, append(
		e.references("a", "b"),
		applyset.Reference{Kind: schema.GroupKind{Kind: "Namespace"}, Name: "more"},
		applyset.Reference{Kind: schema.GroupKind{Group: "example.com", Kind: "Unknown"}, Name: "unknown"},
		applyset.Reference{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: "more", Name: "password"},
	), references)

	e.kubectl(t, e.namespace, "apply --server-side --field-manager=helm -f -", two)
	set := e.set("shop")
	objects := e.objects(t, one)
	_, err = set.Adopt(t.Context(), objects, &applyset.AdoptOptions{Members: references[:2], Managers: applyset.Managers("helm")})
	require.NoError(t, err)
	_, err = set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "x"}, e.data(t, "a"))
	assert.Equal(t, []string{"a"}, e.names(t))

	store("sh.helm.release.v1.shop.v12", "12", "deployed", "broken: [")
	_, err = applyset.HelmRelease(t.Context(), e.Client, e.namespace, "shop")
	require.ErrorContains(t, err, "read the Helm release")
}

// TestSet_AdoptFromFlux takes over objects with the field manager and labels of kustomize-controller, and its inventory.
func TestSet_AdoptFromFlux(t *testing.T) {
	e := newEnvironment(t)
	const labels = `labels: {kustomize.toolkit.fluxcd.io/name: shop, kustomize.toolkit.fluxcd.io/namespace: flux-system}`
	e.kubectl(t, e.namespace, "apply --server-side --field-manager=kustomize-controller -f -",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, `+labels+`}, data: {color: red, size: large}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, `+labels+`}}
`)
	kustomization := &unstructured.Object{Object: map[string]any{"kind": "Kustomization", "status": map[string]any{"inventory": map[string]any{"entries": []any{
		map[string]any{"id": e.namespace + "_a__ConfigMap", "v": "v1"}, map[string]any{"id": e.namespace + "_b__ConfigMap", "v": "v1"},
	}}}}}
	members, err := applyset.FluxInventory(kustomization)
	require.NoError(t, err)
	objects := e.objects(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: blue}}`)
	set := e.set("shop")
	opts := &applyset.AdoptOptions{Members: members, Managers: applyset.Managers("kustomize-controller")}
	events, err := set.Adopt(t.Context(), objects, opts)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"configured ConfigMap a", "configured ConfigMap b"}, outcomes(events))

	events, err = set.Apply(t.Context(), objects, nil)
	require.NoError(t, err)
	assert.Len(t, events, 2)
	assert.Contains(t, outcomes(events), "pruned ConfigMap b")
	assert.Equal(t, map[string]any{"color": "blue"}, e.data(t, "a"))
	live := e.configMap(t, "a")
	assert.Equal(t, map[string]string{applyset.PartOfLabel: set.Parent().ID()}, live.GetLabels())
	require.Len(t, live.GetManagedFields(), 1)
	assert.Equal(t, set.FieldManager(), live.GetManagedFields()[0].Manager)
}

func TestFluxInventory_Entries(t *testing.T) {
	kustomization := &unstructured.Object{Object: map[string]any{
		"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": map[string]any{"name": "shop"},
		"status": map[string]any{"inventory": map[string]any{"entries": []any{
			map[string]any{"id": "shop_web_apps_Deployment", "v": "v1"},
			map[string]any{"id": "shop_settings__ConfigMap", "v": "v1"},
			map[string]any{"id": "_system__shop__reader_rbac.authorization.k8s.io_ClusterRole", "v": "v1"},
		}}},
	}}
	references, err := applyset.FluxInventory(kustomization)
	require.NoError(t, err)
	assert.Equal(t, []applyset.Reference{
		{Kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "shop", Name: "web"},
		{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "shop", Name: "settings"},
		{Kind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, Name: "system:shop:reader"},
	}, references)
	for _, id := range []string{"", "a", "a_b", "a_b_c", "a__c_d", "a_b_c_"} {
		require.NoError(t, unstructured.Set(kustomization, []any{map[string]any{"id": id}}, "status", "inventory", "entries"))
		_, err = applyset.FluxInventory(kustomization)
		assert.ErrorContains(t, err, "is not NAMESPACE_NAME_GROUP_KIND", "%q", id)
	}
	_, err = applyset.FluxInventory(&unstructured.Object{Object: map[string]any{"kind": "Kustomization"}})
	assert.ErrorContains(t, err, "it has no status.inventory.entries")
}
