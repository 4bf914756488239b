package plan_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/plan"
	"github.com/anykind/anykind/transport"
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
