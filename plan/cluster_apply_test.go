package plan_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/plan"
	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/transport"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// environment is a namespace of the sandbox and a client whose writes are recorded.
type environment struct {
	*dynamic.Client

	namespace string
	mu        sync.Mutex
	writes    []string
	reads     []string                    // of ConfigMaps
	onWrite   func(request *http.Request) // before it is sent
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	e := &environment{}
	c := client.Connect(t, "admin", func(cfg *transport.Config) {
		cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return roundTripper{e, next} }
	})
	e.Client = c.WithDefaults(&dynamic.Defaults{FieldManager: "tester"})
	e.namespace = client.NewNamespace(t, c)
	return e
}

// roundTripper records the writes of its environment.
type roundTripper struct {
	*environment

	next http.RoundTripper
}

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && !strings.Contains(request.URL.RawQuery, "dryRun=All") {
		r.mu.Lock()
		r.writes = append(r.writes, request.Method+" "+request.URL.Path)
		r.mu.Unlock()
		if r.onWrite != nil {
			r.onWrite(request)
		}
	}
	if _, name, isConfigMap := strings.Cut(request.URL.Path, "/configmaps"); isConfigMap && request.Method == http.MethodGet {
		r.mu.Lock()
		r.reads = append(r.reads, name)
		r.mu.Unlock()
	}
	return r.next.RoundTrip(request)
}

func (e *environment) objects(t *testing.T, text string) []*manifest.Object {
	t.Helper()
	objects, err := manifest.Decode("test", strings.NewReader(strings.ReplaceAll(text, "NAMESPACE", e.namespace)))
	require.NoError(t, err)
	return objects
}

func (e *environment) plan(t *testing.T, text string, opts *plan.Options) *plan.Plan {
	t.Helper()
	if opts == nil {
		opts = &plan.Options{}
	}
	opts.Namespace = e.namespace
	planned, err := plan.Objects(t.Context(), e.Client, e.objects(t, text), opts)
	require.NoError(t, err)
	return planned
}

// saved returns the plan after Save and Load, and its file.
func saved(t *testing.T, planned *plan.Plan) (*plan.Plan, string) {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, planned.Save(&file))
	text := file.String()
	loaded, err := plan.Load(&file)
	require.NoError(t, err)
	return loaded, text
}

const several = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {color: red}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {color: red}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {password: b25l}}
`

func TestPlan_ApplyOfSavedPlan(t *testing.T) {
	e := newEnvironment(t)
	_, err := e.plan(t, several, nil).Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	e.writes = nil
	changed := strings.NewReplacer("name: b}, data: {color: red", "name: b}, data: {color: blue", "b25l", "dHdv").Replace(several)
	planned := e.plan(t, changed+"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}", nil)
	assert.Empty(t, e.writes, "a plan writes nothing")
	loaded, text := saved(t, planned)
	assert.NotContains(t, text, "b25l", "the present value of a Secret")
	for _, write := range []func(*bytes.Buffer, *plan.Plan) error{
		func(b *bytes.Buffer, p *plan.Plan) error { return p.WriteText(b, nil) },
		func(b *bytes.Buffer, p *plan.Plan) error { return p.WriteJSON(b, nil) },
		func(b *bytes.Buffer, p *plan.Plan) error { return p.WriteShort(b) },
	} {
		var before, after bytes.Buffer
		require.NoError(t, write(&before, planned))
		require.NoError(t, write(&after, loaded))
		assert.Equal(t, before.String(), after.String(), "the output of a saved plan is that of the plan")
		assert.NotContains(t, before.String(), "dHdv")
	}
	var actions []applyset.Action
	_, err = loaded.Apply(t.Context(), e.Client, &plan.ApplyOptions{OnEvent: func(event applyset.Event) { actions = append(actions, event.Action) }})
	require.NoError(t, err)
	assert.Equal(t, []applyset.Action{applyset.Unchanged, applyset.Configured, applyset.Configured, applyset.Created}, actions)
	assert.Len(t, e.writes, 3, "nothing is sent for an unchanged object")
	secret, err := client.Resource(t, e.Client, "secrets").Namespace(e.namespace).Get(t.Context(), "s", nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"password": "dHdv"}, secret.Object["data"], "the saved object is complete")
}

// TestObjects_SecretValuesInErrors plans Secrets whose values are rejected. The cluster is its own copy for a new namespace.
func TestObjects_SecretValuesInErrors(t *testing.T) {
	e := newEnvironment(t)
	namespaces := client.Resource(t, e.Client, "namespaces")
	copies := 0
	for text, want := range map[string]string{
		`stringData: {password: 123456}`:                 ".stringData.password: expected string",
		`stringData: {password: {a: [123456]}, b: 1.5}`:  ": expected string",
		`data: "123456"`:                                 ".data: expected map",
		`data: {password: "123456 no base64"}`:           "illegal base64 data",
		`stringData: {"123456 as a key!": "123456"}`:     "is not shown",
		`stringData: {password: "123456"}, type: [5, 6]`: ".type: expected string",
	} {
		copies++
		more := fmt.Sprintf("%s-%d", e.namespace, copies)
		client.DeleteAtEnd(t, namespaces, more)
		for namespace, source := range map[string]plan.Source{e.namespace: plan.Server, more: plan.Copy} {
			planned := e.plan(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+more+`}}
---
{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: `+namespace+`}, `+text+`}`,
				&plan.Options{Copy: func(context.Context) (*dynamic.Client, error) { return e.Client, nil }})
			require.Equal(t, source, planned.Changes[1].Source)
			loaded, _ := saved(t, planned)
			for _, p := range []*plan.Plan{planned, loaded} {
				require.Len(t, p.Changes, 2)
				assert.Equal(t, plan.Rejected, p.Changes[1].Action, text)
				assert.Contains(t, p.Changes[1].Reason, want)
				var output strings.Builder
				require.NoError(t, p.WriteText(&output, nil))
				require.NoError(t, p.WriteShort(&output))
				require.NoError(t, p.WriteJSON(&output, nil))
				fmt.Fprintln(&output, p.Err())
				assert.NotContains(t, output.String(), "123456")
			}
		}
	}
}

// TestPlan_ApplyAfterChanges changes, deletes, creates and replaces objects after the plan.
func TestPlan_ApplyAfterChanges(t *testing.T) {
	e := newEnvironment(t)
	_, err := e.plan(t, several, nil).Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	planned := e.plan(t, strings.ReplaceAll(several, "red", "blue")+"---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}", nil)
	loaded, _ := saved(t, planned)
	configMaps := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
	_, err = configMaps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{"size":"big"}}`), nil)
	require.NoError(t, err)
	_, err = configMaps.Delete(t.Context(), "b", nil)
	require.NoError(t, err)
	_, err = configMaps.Create(t.Context(), e.objects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: new}}")[0].Object, nil)
	require.NoError(t, err)
	secrets := client.Resource(t, e.Client, "secrets").Namespace(e.namespace)
	_, err = secrets.Delete(t.Context(), "s", nil)
	require.NoError(t, err)
	_, err = secrets.Create(t.Context(), e.objects(t, "{apiVersion: v1, kind: Secret, metadata: {name: s}}")[0].Object, nil)
	require.NoError(t, err)
	namespaces := client.Resource(t, e.Client, "namespaces")
	_, err = namespaces.Patch(t.Context(), e.namespace, types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), nil)
	require.NoError(t, err)
	e.writes = nil

	for _, p := range []*plan.Plan{planned, loaded} {
		events, err := p.Apply(t.Context(), e.Client, nil)
		assert.Empty(t, events)
		var found []string
		for _, part := range errorsOf(err) {
			var changed *plan.ChangedError
			if assert.ErrorAs(t, part, &changed) {
				found = append(found, changed.Object.Kind.Kind+" "+changed.Object.Name+" "+changed.Change)
			}
		}
		slices.Sort(found)
		assert.Equal(t, []string{
			"ConfigMap a was changed", "ConfigMap b was deleted", "ConfigMap new was created", "Namespace " + e.namespace + " was changed",
			"Secret s was deleted and created",
		}, found)
	}
	assert.Empty(t, e.writes, "nothing is written")
}

func TestLoad_InvalidPlans(t *testing.T) {
	for text, want := range map[string]string{
		`{"format":"anykind.dev/plan/v1","changes":[null]}`:                                       "load a plan: change 1 is null",
		`{"format":"anykind.dev/plan/v1","changes":[{"object":"ConfigMap a","action":"create"}]}`: "the object to apply is missing",
		`{"format":"anykind.dev/plan/v0"}`:                                                        `unknown format "anykind.dev/plan/v0"`,
		`[`:                                                                                       "unexpected EOF",
	} {
		_, err := plan.Load(strings.NewReader(text))
		assert.ErrorContains(t, err, want)
	}
}

// TestObjects_ReadsByList reads objects by a list, unless the namespace has many others.
func TestObjects_ReadsByList(t *testing.T) {
	e := newEnvironment(t)
	var objects, others []string
	for i := range 20 {
		object := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}}", i)
		if others = append(others, object); i < 6 {
			objects = append(objects, object)
		}
	}
	text := strings.Join(objects, "\n---\n")
	_, err := e.plan(t, text, nil).Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	e.reads = nil
	planned := e.plan(t, text, nil)
	assert.Equal(t, []string{""}, e.reads)
	require.Len(t, planned.Changes, 6)
	for _, change := range planned.Changes {
		assert.Equal(t, plan.Unchanged, change.Action)
	}
	_, err = e.plan(t, strings.Join(others, "\n---\n"), nil).Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	e.reads = nil
	e.plan(t, text, nil)
	assert.ElementsMatch(t, []string{"", "/c0", "/c1", "/c2", "/c3", "/c4", "/c5"}, e.reads)
	e.reads = nil
	e.plan(t, strings.Join(objects[:2], "\n---\n"), nil)
	assert.ElementsMatch(t, []string{"/c0", "/c1"}, e.reads, "few objects")
}

// errorsOf returns the joined errors in an error.
func errorsOf(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}

func TestPlan_ApplyOfReplace(t *testing.T) {
	e := newEnvironment(t)
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true, data: {color: red}}"
	_, err := e.plan(t, text, nil).Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	e.writes = nil
	planned, _ := saved(t, e.plan(t, strings.ReplaceAll(text, "red", "blue"), nil))
	_, err = planned.Apply(t.Context(), e.Client, nil)
	require.ErrorContains(t, err, "permit it with Replace")
	assert.Empty(t, e.writes)
	events, err := planned.Apply(t.Context(), e.Client, &plan.ApplyOptions{Replace: true})
	require.NoError(t, err)
	require.Len(t, events, 1)
	assert.NotEqual(t, planned.Changes[0].Live.GetUID(), events[0].Live.GetUID())
}

// TestPlan_ApplyDeletesOnlyPlannedMembers plans a set with a kept Namespace. After the plan a member is restored from a backup, or the
// reason to keep the Namespace ends.
func TestPlan_ApplyDeletesOnlyPlannedMembers(t *testing.T) {
	for name, restores := range map[string]bool{"restored member": true, "end of a reason to keep": false} {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t)
			parent := applyset.Parent{Namespace: e.namespace, Name: "set"}
			set := applyset.New(e.Client, parent, nil)
			namespaces := client.Resource(t, e.Client, "namespaces")
			more := e.namespace + "-more"
			client.DeleteAtEnd(t, namespaces, more)
			_, err := set.Apply(t.Context(), e.objects(t, `{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-more}}`), nil)
			require.NoError(t, err)
			configMap := func(name, label string) *unstructured.Object {
				return e.objects(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`, labels: {applyset.kubernetes.io/part-of: `+label+`}}}`)[0].Object
			}
			configMaps := client.Resource(t, e.Client, "configmaps")
			_, err = configMaps.Namespace(more).Create(t.Context(), configMap("foreign", "different"), nil)
			require.NoError(t, err)
			planned, _ := saved(t, e.plan(t, several, &plan.Options{Set: set}))
			want := applyset.Reference{Kind: schema.GroupKind{Kind: "Namespace"}, Name: more}
			if restores {
				want = applyset.Reference{Kind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: e.namespace, Name: "restored"}
				_, err = configMaps.Namespace(e.namespace).Create(t.Context(), configMap("restored", parent.ID()), nil)
			} else {
				_, err = configMaps.Namespace(more).Delete(t.Context(), "foreign", nil)
			}
			require.NoError(t, err)
			e.writes = nil

			_, err = planned.Apply(t.Context(), e.Client, nil)
			var changed *plan.ChangedError
			require.ErrorAs(t, err, &changed)
			assert.Equal(t, plan.ChangedError{Object: want, Change: "became prunable"}, *changed)
			assert.Empty(t, e.writes)
		})
	}
}

// gems is a definition without conditions of readiness.
const gems = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gems.NAMESPACE.example.com}
spec:
  group: NAMESPACE.example.com
  scope: Namespaced
  names: {plural: gems, singular: gem, kind: Gem, listKind: GemList}
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object}}}]
`

// TestObjects_ReadsDefinitionOfKubernetesGroup plans a custom resource in a group of a project of Kubernetes.
func TestObjects_ReadsDefinitionOfKubernetesGroup(t *testing.T) {
	e := newEnvironment(t)
	name := "gems." + e.namespace + ".k8s.io"
	client.DeleteAtEnd(t, client.Resource(t, e.Client, "customresourcedefinitions"), name)
	definition := e.objects(t, strings.ReplaceAll(gems, ".example.com", ".k8s.io"))
	definition[0].SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved, a test"})
	planned, err := plan.Objects(t.Context(), e.Client, definition, nil)
	require.NoError(t, err)
	_, err = planned.Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	_, err = e.WaitForResources(t.Context(), name)
	require.NoError(t, err)
	planned = e.plan(t, "{apiVersion: NAMESPACE.k8s.io/v1, kind: Gem, metadata: {name: one}}", nil)
	names := make([]string, len(planned.Reads))
	for i, read := range planned.Reads {
		names[i] = read.Object.Name
	}
	assert.ElementsMatch(t, []string{name, e.namespace}, names)
}

// TestPlan_ApplyUsesOptionsOfSet applies an object that depends on an object with a readiness rule. Without the rule the apply waits.
func TestPlan_ApplyUsesOptionsOfSet(t *testing.T) {
	e := newEnvironment(t)
	client.DeleteAtEnd(t, client.Resource(t, e.Client, "customresourcedefinitions"), "gems."+e.namespace+".example.com")
	_, err := e.plan(t, gems, nil).Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	_, err = e.WaitForResources(t.Context(), "gems."+e.namespace+".example.com")
	require.NoError(t, err)
	opts := &applyset.Options{Rules: []readiness.Rule{{Group: e.namespace + ".example.com", Kind: "Gem"}}}
	for _, isLoaded := range []bool{false, true} {
		name := fmt.Sprintf("loaded-%t", isLoaded)
		planned := e.plan(t, strings.ReplaceAll(`
{apiVersion: NAMESPACE.example.com/v1, kind: Gem, metadata: {name: OBJECT}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: OBJECT, annotations: {config.kubernetes.io/depends-on: NAMESPACE.example.com/namespaces/NAMESPACE/Gem/OBJECT}}}
`, "OBJECT", name), &plan.Options{Set: applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: name}, opts)})
		apply := &plan.ApplyOptions{}
		if isLoaded {
			planned, _ = saved(t, planned)
			apply.Set = opts
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		_, err = planned.Apply(ctx, e.Client, apply)
		cancel()
		require.NoError(t, err)
	}
}

// TestObjects_ObjectOfDifferentSet plans a member of a different set, after a new ServiceAccount.
func TestObjects_ObjectOfDifferentSet(t *testing.T) {
	e := newEnvironment(t)
	set := func(name string) *applyset.Set {
		return applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: name}, nil)
	}
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true, data: {color: COLOR}}"
	first := e.objects(t, strings.ReplaceAll(text, "COLOR", "red"))
	_, err := set("first").Apply(t.Context(), first, nil)
	require.NoError(t, err)
	for _, force := range []bool{false, true} {
		for _, color := range []string{"red", "blue"} { // blue would be a replace
			planned := e.plan(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: new}}\n---\n"+strings.ReplaceAll(text, "COLOR", color),
				&plan.Options{Set: set("second"), ForceConflicts: force})
			require.Len(t, planned.Changes, 2)
			change := planned.Changes[1]
			assert.Equal(t, plan.Rejected, change.Action)
			assert.Contains(t, change.Reason, `of manager "applyset/first.`)
			var owned *applyset.OwnedError
			require.ErrorAs(t, planned.Err(), &owned)
			assert.Equal(t, set("first").Parent().ID(), owned.ID)
			var output strings.Builder
			require.NoError(t, planned.WriteText(&output, nil))
			assert.Contains(t, output.String(), "it belongs to the set")
		}
	}
}

const aggregated = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.NAMESPACE.example.com}
spec:
  {group: NAMESPACE.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: api, namespace: NAMESPACE}}
---
{apiVersion: NAMESPACE.example.com/v1, kind: Gem, metadata: {name: namespaced, namespace: NAMESPACE}}
---
{apiVersion: NAMESPACE.example.com/v1, kind: GemClass, metadata: {name: cluster-scoped}}
`

// TestObjects_AggregatedKind plans objects of kinds that an APIService of the plan registers.
func TestObjects_AggregatedKind(t *testing.T) {
	e := newEnvironment(t)
	copied := func(context.Context) (*dynamic.Client, error) { return nil, errors.New("no copy serves them") }
	for _, set := range []*applyset.Set{nil, applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: "set"}, nil)} {
		planned := e.plan(t, aggregated, &plan.Options{Set: set, Copy: copied})
		require.Len(t, planned.Changes, 3)
		for _, change := range planned.Changes[1:] {
			assert.Equal(t, plan.NotPlanned, change.Action)
			assert.Equal(t, `an aggregated API server serves it, registered by APIService "v1.`+e.namespace+`.example.com" of this plan`, change.Reason)
			want := ""
			if change.Object.Name == "namespaced" {
				want = e.namespace
			}
			assert.Equal(t, want, change.Object.Namespace)
		}
	}
	planned := e.plan(t, strings.ReplaceAll(aggregated, ".com/v1", ".com/v2"), nil)
	require.Len(t, planned.Changes, 3)
	assert.Equal(t, plan.Rejected, planned.Changes[0].Action, "of a different version")
}

// TestPlan_ReplaceInLockedSet replaces an object of a set while a different run has the lock, and afterwards.
func TestPlan_ReplaceInLockedSet(t *testing.T) {
	e := newEnvironment(t)
	set := applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: "set"}, nil)
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true, data: {color: red}}"
	_, err := set.Apply(t.Context(), e.objects(t, text), nil)
	require.NoError(t, err)
	lock := func(isReleased bool) {
		t.Helper()
		record := fmt.Sprintf(`{"holder":"other","id":"x","duration":"1h","renewed":"2026-01-01T00:00:00Z","released":%t}`, isReleased)
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"applyset.anykind.dev/lock": record}}})
		require.NoError(t, err)
		_, err = client.Resource(t, e.Client, "secrets").Namespace(e.namespace).Patch(t.Context(), "set", types.MergePatchType, patch, nil)
		require.NoError(t, err)
	}
	lock(false)
	planned := e.plan(t, strings.ReplaceAll(text, "red", "blue"), &plan.Options{Set: set})
	e.writes = nil
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = planned.Apply(ctx, e.Client, &plan.ApplyOptions{Replace: true})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, e.writes)

	lock(true)
	planned = e.plan(t, strings.ReplaceAll(text, "red", "blue"), &plan.Options{Set: set})
	events, err := planned.Apply(t.Context(), e.Client, &plan.ApplyOptions{Replace: true})
	require.NoError(t, err)
	require.Len(t, events, 1)
	assert.Equal(t, applyset.Created, events[0].Action)
	assert.NotEqual(t, planned.Changes[0].Live.GetUID(), events[0].Live.GetUID())
}

// TestPlan_ReplaceAfterStatusChange changes the status between the plan and the deletion, as controllers do.
func TestPlan_ReplaceAfterStatusChange(t *testing.T) {
	e := newEnvironment(t)
	const text = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {serviceName: red, replicas: 0,
		selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}}}`
	_, err := e.plan(t, text, nil).Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	planned := e.plan(t, strings.ReplaceAll(text, "red", "blue"), nil)
	statefulSets := client.Resource(t, e.Client, "statefulsets").Namespace(e.namespace)
	deletions := 0
	e.onWrite = func(request *http.Request) {
		if request.Method != http.MethodDelete {
			return
		}
		if deletions++; deletions == 1 {
			_, err := statefulSets.Subresource("status").Patch(t.Context(), "a", types.MergePatchType,
				[]byte(`{"status":{"replicas":7}}`), nil)
			assert.NoError(t, err)
		}
	}
	_, err = planned.Apply(t.Context(), e.Client, &plan.ApplyOptions{Replace: true})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, deletions, 2, "the controller of StatefulSets may change the status, too")
}

// TestPlan_ApplyOfSetAfterLateChange changes an object right before its apply is sent.
func TestPlan_ApplyOfSetAfterLateChange(t *testing.T) {
	const text = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, labels: {color: red}}, spec: {serviceName: a, replicas: 0,
		selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}}}`
	for subresource, patch := range map[string]string{"status": `{"status":{"replicas":7}}`, "": `{"metadata":{"labels":{"size":"large"}}}`} {
		t.Run(subresource, func(t *testing.T) {
			e := newEnvironment(t)
			set := applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: "set"}, nil)
			_, err := set.Apply(t.Context(), e.objects(t, text), nil)
			require.NoError(t, err)
			planned := e.plan(t, strings.ReplaceAll(text, "red", "blue"), &plan.Options{Set: set})
			statefulSets := client.Resource(t, e.Client, "statefulsets").Namespace(e.namespace)
			changed := statefulSets
			if subresource != "" {
				changed = statefulSets.Subresource(subresource)
			}
			var once sync.Once
			e.onWrite = func(request *http.Request) {
				if strings.HasSuffix(request.URL.Path, "/statefulsets/a") && strings.Contains(request.Header.Get("Content-Type"), "apply-patch") {
					once.Do(func() {
						_, err := changed.Patch(t.Context(), "a", types.MergePatchType, []byte(patch), nil)
						assert.NoError(t, err)
					})
				}
			}
			_, err = planned.Apply(t.Context(), e.Client, nil)
			live, getErr := statefulSets.Get(t.Context(), "a", nil)
			require.NoError(t, getErr)
			if subresource == "status" {
				require.NoError(t, err)
				assert.Equal(t, "blue", live.GetLabels()["color"])
				return
			}
			var outdated *plan.ChangedError
			require.ErrorAs(t, err, &outdated)
			assert.Equal(t, "was changed", outdated.Change)
			assert.Equal(t, "red", live.GetLabels()["color"])
		})
	}
}

// TestPlan_ReplaceNamesFinalizers ends the wait for the deletion of a replaced object.
func TestPlan_ReplaceNamesFinalizers(t *testing.T) {
	e := newEnvironment(t)
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/x]}, immutable: true, data: {color: red}}"
	_, err := e.plan(t, text, nil).Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	planned := e.plan(t, strings.ReplaceAll(text, "red", "blue"), nil)
	require.Len(t, planned.Changes, 1)
	assert.Equal(t, plan.Replace, planned.Changes[0].Action)
	assert.Contains(t, planned.Changes[0].Reason, "it stays until its finalizers are removed: example.com/x")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = planned.Apply(ctx, e.Client, &plan.ApplyOptions{Replace: true})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "with the finalizers example.com/x")
	configMaps := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
	_, err = configMaps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), nil)
	require.NoError(t, err)
}

const owners = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: NAMESPACE-more}}
`

// TestObjects_Cascade compares the planned deletes of others with the work of the garbage and namespace controllers.
func TestObjects_Cascade(t *testing.T) {
	cluster.NeedComponents(t, "kube-controller-manager")
	e := newEnvironment(t)
	set := applyset.New(e.Client, applyset.Parent{Namespace: e.namespace, Name: "set"}, nil)
	events, err := set.Apply(t.Context(), e.objects(t, owners), nil)
	require.NoError(t, err)
	client.DeleteAtEnd(t, client.Resource(t, e.Client, "namespaces"), e.namespace+"-more")
	configMaps := client.Resource(t, e.Client, "configmaps").Namespace(e.namespace)
	create := func(resource *dynamic.Resource, name string, ownerNames ...string) {
		t.Helper()
		obj := e.objects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+", ownerReferences: []}}")[0].Object
		var refs []any
		for _, owner := range ownerNames {
			live, err := configMaps.Get(t.Context(), owner, nil)
			require.NoError(t, err)
			refs = append(refs, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": string(live.GetUID())})
		}
		obj.Object["metadata"].(map[string]any)["ownerReferences"] = refs
		_, err := resource.Create(t.Context(), obj, nil)
		require.NoError(t, err)
	}
	create(configMaps, "owned", "owner")
	create(configMaps, "below", "owned")
	create(configMaps, "shared", "owner", "kept")
	create(configMaps.Namespace(e.namespace+"-more"), "content")
	require.Len(t, events, 3)

	remaining := "{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}}"
	_, err = set.Apply(t.Context(), e.objects(t, remaining), &applyset.ApplyOptions{NoPrune: true})
	require.NoError(t, err)
	planned := e.plan(t, remaining, &plan.Options{Set: set})
	cascades := map[string][]string{}
	for _, change := range planned.Changes {
		for _, ref := range change.Cascade {
			if ref.Name != "kube-root-ca.crt" && ref.Kind.Kind != "ServiceAccount" { // of every namespace
				cascades[string(change.Action)+" "+change.Object.Name] = append(cascades[string(change.Action)+" "+change.Object.Name], ref.Name)
			}
		}
	}
	assert.Equal(t, map[string][]string{"prune owner": {"below", "owned"}}, cascades, "the namespace has objects of others and is kept")
	_, err = planned.Apply(t.Context(), e.Client, nil)
	require.NoError(t, err)
	for _, name := range []string{"owned", "below"} {
		_, err = configMaps.Wait(t.Context(), name, dynamic.Deleted(""))
		require.NoError(t, err)
	}
	_, err = configMaps.Get(t.Context(), "shared", nil)
	assert.False(t, apierrors.IsNotFound(err), "it has an owner")
}
