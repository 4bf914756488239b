// Package planscenario has sets of objects whose plan is compared with the cluster after the apply. Tests of package plan run the
// scenarios that the server's dry run can check. Tests of module apitest run all of them, with a copy of the cluster.
package planscenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/applyset"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/plan"
	"github.com/anykind/anykind/unstructured"
	"github.com/anykind/anykind/unstructured/manifest"
)

// Scenario is a set of objects in a namespace of its own. NAMESPACE stands for its name, and GROUP for an API group of its own.
type Scenario struct {
	Name string
	// Setup is applied by the manager of the plan, and Others by a different manager.
	Setup, Others string
	Objects       string
	// Want are the changes: "create ConfigMap a". nil is not compared.
	Want []string
	// NeedsCopy is set if the server's dry run cannot check the scenario.
	NeedsCopy bool
	Force     bool
	// IsSet plans and applies the objects as a set, also Setup.
	IsSet bool
	// Check makes further assertions about the plan.
	Check func(t *testing.T, planned *plan.Plan)
}

const manager = "scenario"

// Run plans the objects of a scenario, applies them, and compares. copyOf returns a copy of the cluster; it may be nil.
func Run(t *testing.T, c *dynamic.Client, s *Scenario, copyOf func(context.Context) (*dynamic.Client, error)) {
	t.Helper()
	e, opts := setUp(t, c, s)
	opts.Copy = copyOf
	// Controllers may change an object between the plan and its apply.
	for range maxAttempts {
		if !e.attempt(t, opts) {
			return
		}
	}
	t.Errorf("an object of the plan changes all the time (%d attempts)", maxAttempts)
}

const maxAttempts = 20

// attempt plans and applies. It returns true if an object has changed in between.
func (e *environment) attempt(t *testing.T, opts *plan.Options) (isOutdated bool) {
	t.Helper()
	planned, err := plan.Objects(t.Context(), e.Client, e.objects(t, e.Objects), opts)
	require.NoError(t, err)
	var got []string
	for _, change := range planned.Changes {
		got = append(got, strings.ReplaceAll(fmt.Sprintf("%s %s %s", change.Action, change.Object.Kind.Kind, change.Object.Name), e.namespace, "NAMESPACE"))
	}
	if e.Want != nil && !assert.ElementsMatch(t, e.Want, got, "%s", describe(planned)) {
		return false
	}
	events, err := planned.Apply(t.Context(), e.Client, &plan.ApplyOptions{Replace: true})
	var changed *plan.ChangedError
	switch {
	case errors.As(err, &changed):
		return true
	case planned.Err() != nil:
		require.Error(t, err, "a plan with rejected objects")
		require.Empty(t, events)
		events = e.applyEach(t, planned)
	default:
		require.NoError(t, err)
	}
	if e.Check != nil { // an object that changes meanwhile has further differences
		e.Check(t, planned)
	}
	e.assertHappened(t, planned, events)
	return false
}

// Compare plans the objects of a scenario with the cluster and with a copy of it, and compares both plans.
func Compare(t *testing.T, c *dynamic.Client, s *Scenario, copyOf func(context.Context) (*dynamic.Client, error)) {
	t.Helper()
	e, opts := setUp(t, c, s)
	planned, err := plan.Objects(t.Context(), e.Client, e.objects(t, e.Objects), opts)
	require.NoError(t, err)
	copied, err := copyOf(t.Context())
	require.NoError(t, err)
	if s.IsSet {
		opts.Set = e.set(copied)
	}
	ofCopy, err := plan.Objects(t.Context(), e.prepared(copied), e.objects(t, e.Objects), opts)
	require.NoError(t, err)
	require.Len(t, ofCopy.Changes, len(planned.Changes))
	for i, want := range planned.Changes {
		got := ofCopy.Changes[i]
		assert.Equal(t, want.Object, got.Object)
		assert.Equal(t, want.Action, got.Action, "%s: of the server (expected: %s) and of the copy (actual: %s)", want.Object, want.Reason, got.Reason)
		assert.Equal(t, want.Cascade, got.Cascade)
		if want.Planned != nil && got.Planned != nil {
			assert.Equal(t, normalize(t, want.Planned, false), normalize(t, got.Planned, false), "%s: of the server (expected) and of the copy (actual)", want.Object)
		}
	}
}

// setUp creates the namespace and the objects before the plan.
func setUp(t *testing.T, c *dynamic.Client, s *Scenario) (*environment, *plan.Options) {
	t.Helper()
	e := &environment{Scenario: s, namespace: client.NewNamespace(t, c)}
	e.Client = e.prepared(c)
	e.deleteAtEnd(t)
	opts := &plan.Options{Namespace: e.namespace, ForceConflicts: s.Force}
	if s.IsSet {
		opts.Set = e.set(e.Client)
		_, err := opts.Set.Apply(t.Context(), e.objects(t, s.Setup), nil)
		require.NoError(t, err)
	} else {
		e.apply(t, e.Client, s.Setup)
	}
	e.apply(t, e.WithDefaults(&dynamic.Defaults{FieldManager: "others"}), s.Others)
	return e, opts
}

// prepared returns a client with the manager of the plan.
func (e *environment) prepared(c *dynamic.Client) *dynamic.Client {
	return c.WithDefaults(&dynamic.Defaults{FieldManager: manager, OnWarning: func(context.Context, string) {}})
}

func (e *environment) set(c *dynamic.Client) *applyset.Set {
	return applyset.New(c, applyset.Parent{Namespace: e.namespace, Name: "set"}, nil)
}

func describe(planned *plan.Plan) string {
	var text strings.Builder
	_ = planned.WriteText(&text, nil) // a strings.Builder has no errors
	return text.String()
}

type environment struct {
	*dynamic.Client
	*Scenario

	namespace string
}

func (e *environment) objects(t *testing.T, text string) []*manifest.Object {
	t.Helper()
	text = strings.NewReplacer("NAMESPACE", e.namespace, "GROUP", e.namespace+".example.com").Replace(text)
	objects, err := manifest.Decode("scenario", strings.NewReader(text))
	require.NoError(t, err)
	return objects
}

// deleteAtEnd deletes the cluster-scoped objects of a scenario.
func (e *environment) deleteAtEnd(t *testing.T) {
	t.Helper()
	seen := map[string]bool{}
	for _, obj := range slices.Concat(e.objects(t, e.Setup), e.objects(t, e.Objects)) {
		resource, err := e.ForKind(t.Context(), obj.GroupVersionKind())
		if err != nil || resource.APIResource().Namespaced || seen[obj.GetKind()+obj.GetName()] {
			continue
		}
		seen[obj.GetKind()+obj.GetName()] = true
		client.DeleteAtEnd(t, resource, obj.GetName())
	}
}

func (e *environment) apply(t *testing.T, c *dynamic.Client, text string) {
	t.Helper()
	if text == "" {
		return
	}
	c = c.WithDefaults(&dynamic.Defaults{Namespace: e.namespace})
	collected := func(yield func(*unstructured.Object, error) bool) {
		for _, obj := range e.objects(t, text) {
			if !yield(obj.Object, nil) {
				return
			}
		}
	}
	for found, err := range c.ForObjects(t.Context(), collected) {
		require.NoError(t, err)
		_, err = found.Resource.Apply(t.Context(), found.Object, &metav1.ApplyOptions{Force: true})
		require.NoError(t, err)
		if found.Object.GetKind() == "CustomResourceDefinition" {
			_, err = found.Resource.Wait(t.Context(), found.Object.GetName(), dynamic.Condition("Established"))
			require.NoError(t, err)
		}
	}
}

// assertHappened compares the outcome of an apply with the plan.
func (e *environment) assertHappened(t *testing.T, planned *plan.Plan, events []applyset.Event) {
	t.Helper()
	results := map[applyset.Reference]applyset.Event{}
	for _, event := range events {
		results[event.Object] = event
	}
	for _, change := range planned.Changes {
		e.assertChange(t, change, results[change.Object])
	}
}

// applyEach applies all objects in their order, and continues after errors.
func (e *environment) applyEach(t *testing.T, planned *plan.Plan) (events []applyset.Event) {
	t.Helper()
	rejected := map[applyset.Reference]bool{}
	for _, change := range planned.Changes {
		rejected[change.Object] = change.Action == plan.Rejected
	}
	objects := e.objects(t, e.Objects)
	plain := make([]*unstructured.Object, len(objects))
	for i, obj := range objects {
		plain[i] = obj.Object
	}
	order, err := dynamic.InstallOrder(plain, e.namespace)
	require.NoError(t, err)
	c := e.WithDefaults(&dynamic.Defaults{Namespace: e.namespace})
	for _, obj := range slices.Concat(order.Stages...) {
		one := func(yield func(*unstructured.Object, error) bool) { yield(obj, nil) }
		for found, err := range c.ForObjects(t.Context(), one) {
			ref := applyset.ReferenceTo(obj)
			event := applyset.Event{Object: ref, Err: err}
			if err == nil {
				if found.Resource.APIResource().Namespaced && ref.Namespace == "" {
					event.Object.Namespace = e.namespace
				}
				if rejected[event.Object] {
					awaitRejection(t, found)
				}
				event.Live, event.Err = found.Resource.Apply(t.Context(), found.Object, &metav1.ApplyOptions{Force: e.Force})
			}
			events = append(events, event)
		}
	}
	return events
}

// awaitRejection waits until the server rejects an object: a changed definition takes effect a moment later.
func awaitRejection(t *testing.T, found *dynamic.ManifestObject) {
	t.Helper()
	dryRun := found.Resource.WithDefaults(&dynamic.Defaults{DryRun: true})
	assert.Eventually(t, func() bool {
		_, err := dryRun.Apply(t.Context(), found.Object, nil)
		return err != nil
	}, time.Minute, 10*time.Millisecond, "%s is not rejected", found.Object.GetName())
}

func (e *environment) assertChange(t *testing.T, change *plan.Change, result applyset.Event) {
	t.Helper()
	switch change.Action {
	case plan.Rejected:
		var conflict *dynamic.ApplyConflictError
		if assert.Error(t, result.Err, "%s is planned as rejected: %s", change.Object, change.Reason) && !errors.As(result.Err, &conflict) {
			assert.Contains(t, result.Err.Error(), lastPart(change.Reason), "%s", change.Object)
		}
	case plan.Prune:
		assert.Equal(t, applyset.Pruned, result.Action, "%s", change.Object)
	case plan.Keep:
		assert.Equal(t, applyset.Kept, result.Action, "%s", change.Object)
	case plan.NotPlanned:
		assert.NotEmpty(t, change.Reason)
	case plan.Create, plan.Configure, plan.Replace, plan.Unchanged:
		require.NoError(t, result.Err, "%s", change.Object)
		if assert.NotNil(t, result.Live, "%s", change.Object) && change.Planned != nil {
			hadStatus := change.Live != nil
			assert.Equal(t, normalize(t, result.Live, hadStatus), normalize(t, change.Planned, hadStatus), "%s: after the apply (expected), in the plan (actual), planned by the %s; not validated: %v",
				change.Object, change.Source, change.NotValidated)
		}
	default:
		assert.Fail(t, "unknown action", "%s: %s", change.Object, change.Action)
	}
}

// lastPart returns the end of a message: its beginning may name a random object or a time.
func lastPart(text string) string {
	parts := strings.Split(text, ": ")
	return parts[len(parts)-1]
}

// assigned are values that the server chooses at each write.
var assigned = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`kube-api-access-\w{5}`), "kube-api-access"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`"(clusterIP|nodePort)": ?"?[0-9.]+"?`), `"$1":""`},
	{regexp.MustCompile(`"clusterIPs": ?\[[^]]*\]`), `"clusterIPs":[]`},
}

// normalize returns the JSON of an object without values chosen by the server. The status is left out of an object that existed
// before, and of a definition: controllers write it at any time.
func normalize(t *testing.T, obj *unstructured.Object, withoutStatus bool) string {
	t.Helper()
	changed := obj.DeepCopy()
	changed.SetResourceVersion("")
	if withoutStatus || changed.GetKind() == "CustomResourceDefinition" {
		delete(changed.Object, "status")
		changed.SetManagedFields(slices.DeleteFunc(changed.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Subresource == "status" }))
	}
	entries := changed.GetManagedFields() // in the order of their times
	slices.SortStableFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return strings.Compare(a.Manager+a.Subresource, b.Manager+b.Subresource)
	})
	changed.SetManagedFields(entries)
	data, err := json.MarshalIndent(changed.Object, "", " ")
	require.NoError(t, err)
	text := string(data)
	if uid := string(obj.GetUID()); uid != "" {
		text = strings.ReplaceAll(text, uid, "UID")
	}
	for _, one := range assigned {
		text = one.pattern.ReplaceAllString(text, one.with)
	}
	return text
}
