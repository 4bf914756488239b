package plans_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/command/plans"
	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/client"
	"github.com/anykind/anykind/plan"
	"github.com/anykind/anykind/unstructured"
)

const (
	ownedService = `{apiVersion: v1, kind: Service, metadata: {name: web, labels: {app: web, team: a}}, spec: {selector: {app: web}, ` +
		`sessionAffinity: ClientIP, ports: [{name: http, port: 80}, {name: debug, port: 81}]}}`
	changedService = `{apiVersion: v1, kind: Service, metadata: {name: web, labels: {app: shop}}, spec: {selector: {app: web}, ` +
		`ports: [{name: http, port: 80, targetPort: 8080}]}}`
)

// TestPlan_ShowsFieldsThatApplyMoves plans and applies an object whose fields kubectl owns: plan, apply and apply --plan agree.
func TestPlan_ShowsFieldsThatApplyMoves(t *testing.T) {
	applyClientSide := func(t *testing.T, services *dynamic.Resource, obj *unstructured.Object) {
		data, err := json.Marshal(obj.Object)
		require.NoError(t, err)
		obj.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(data)})
		_, err = services.Create(t.Context(), obj, &metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"})
		require.NoError(t, err)
	}
	applyServerSide := func(t *testing.T, services *dynamic.Resource, obj *unstructured.Object) {
		_, err := services.Apply(t.Context(), obj, &metav1.ApplyOptions{FieldManager: "kubectl"})
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		write    func(*testing.T, *dynamic.Resource, *unstructured.Object)
		flags    []string
		managers []string // after the apply
	}{
		"client-side apply":                       {applyClientSide, nil, []string{"anyctl", "kubectl-last-applied"}},
		"server-side apply":                       {applyServerSide, nil, []string{"anyctl"}},
		"client-side apply and a further manager": {applyClientSide, []string{"--field-manager=mine", "--force-conflicts"}, []string{"mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			var results []*unstructured.Object
			for _, isPlan := range []bool{false, true} {
				e := newEnvironment(t)
				services := client.Resource(t, e.client, "services").Namespace(e.namespace)
				obj, err := unstructured.NewYAMLDecoder(strings.NewReader(ownedService)).Next()
				require.NoError(t, err)
				c.write(t, services, obj)
				file := filepath.Join(t.TempDir(), "plan.json")
				r := e.run(t, changedService, append([]string{"plan", "-f", "-", "-n", e.namespace, "--copy=off", "--save", file}, c.flags...)...)
				require.Zero(t, r.code, r.stdout+r.stderr)
				assert.Equal(t, c.flags != nil, strings.Contains(r.stdout, "conflict: "), "taken over by force: %s", r.stdout)
				for _, line := range []string{"-    team: a", "-  sessionAffinity: ClientIP", "-  - name: debug", "+    targetPort: 8080"} {
					assert.Contains(t, r.stdout, line+"\n")
				}
				planned := load(t, file)
				if isPlan {
					r = e.run(t, "", "apply", "--plan", file)
				} else {
					r = e.run(t, changedService, append([]string{"apply", "-f", "-", "-n", e.namespace}, c.flags...)...)
				}
				require.Zero(t, r.code, r.stderr)
				live, err := services.Get(t.Context(), "web", nil)
				require.NoError(t, err)
				change := plan.Compare(planned.Changes[0].Planned, live)
				for _, field := range change.Fields {
					assert.Contains(t, field.Path, "last-applied-configuration", "planned %v, have %v", field.Live, field.Planned)
				}
				for _, entry := range live.GetManagedFields() {
					assert.Contains(t, c.managers, entry.Manager)
				}
				results = append(results, live)
				r = e.run(t, changedService, append([]string{"plan", "-f", "-", "-n", e.namespace, "--copy=off", "-o", "short"}, c.flags...)...)
				assert.Contains(t, r.stdout, "unchanged")
			}
			for _, field := range plan.Compare(results[0], results[1]).Fields {
				assert.True(t, strings.HasPrefix(field.Path, ".metadata.namespace") || strings.HasPrefix(field.Path, ".spec.clusterIP") ||
					strings.Contains(field.Path, "last-applied"), "%+v", field)
			}
		})
	}
}

// TestPlan_KeepsConflictsOfOthers plans with a conflict of a further manager, and with a field manager that moves no fields after a conflict.
func TestPlan_KeepsConflictsOfOthers(t *testing.T) {
	e := newEnvironment(t)
	services := client.Resource(t, e.client, "services").Namespace(e.namespace)
	obj, err := unstructured.NewYAMLDecoder(strings.NewReader(ownedService)).Next()
	require.NoError(t, err)
	_, err = services.Apply(t.Context(), obj, &metav1.ApplyOptions{FieldManager: "kubectl"})
	require.NoError(t, err)
	line := []string{"plan", "-f", "-", "-n", e.namespace, "--copy=off"}
	r := e.run(t, changedService, append(line, "--field-manager=mine")...)
	assert.Contains(t, r.stdout, `conflict: .metadata.labels.app of "kubectl"`)
	_, err = services.Apply(t.Context(), obj, &metav1.ApplyOptions{FieldManager: "further"})
	require.NoError(t, err)
	r = e.run(t, changedService, line...)
	assert.Contains(t, r.stdout, `conflict: .metadata.labels.app of "further"`)
	assert.Equal(t, 1, r.code)
}

func load(t *testing.T, file string) *plan.Plan {
	t.Helper()
	planned, err := plans.Load(file, nil)
	require.NoError(t, err)
	return planned
}
