package inspect

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/unstructured"
)

func TestPodFilter_Decide(t *testing.T) {
	const (
		managed  = `"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1", "controller": true}]`
		daemon   = `"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1", "controller": true}]`
		orphan   = `"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "gone", "uid": "1", "controller": true}]`
		mirror   = `"annotations": {"kubernetes.io/config.mirror": "x"}`
		deleted  = managed + `, "deletionTimestamp": "2026-01-02T03:04:05Z"`
		emptyDir = `"volumes": [{"name": "v", "emptyDir": {}}]`
	)
	all := podFilter{force: true, ignoreDaemonSets: true, deleteEmptyDirData: true}
	for name, c := range map[string]struct {
		metadata, spec, phase string
		filter                podFilter
		want                  decision
	}{
		"managed":           {managed, "", "Running", podFilter{}, decision{remove: true}},
		"unmanaged":         {"", "", "Running", podFilter{}, decision{problem: "Pods that declare no controller (use --force to override)"}},
		"unmanaged, forced": {"", "", "Running", all, decision{remove: true, warning: "deleting Pods that declare no controller"}},
		"local data":        {managed, emptyDir, "Running", podFilter{force: true}, decision{problem: "Pods with local storage (use --delete-emptydir-data to override)"}},
		"local data, lost":  {managed, emptyDir, "Running", all, decision{remove: true}},
		"daemon":            {daemon, "", "Running", podFilter{force: true}, decision{problem: "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"}},
		"daemon, ignored":   {daemon, "", "Running", all, decision{warning: "ignoring DaemonSet-managed Pods"}},
		"daemon, ended":     {daemon, emptyDir, "Failed", podFilter{}, decision{remove: true}},
		"orphan":            {orphan, "", "Running", podFilter{}, decision{problem: `daemonsets.apps "gone" not found`}},
		"orphan, forced":    {orphan, "", "Running", all, decision{remove: true}},
		"mirror":            {mirror, emptyDir, "Running", podFilter{}, decision{}},
		"ended":             {"", emptyDir, "Succeeded", podFilter{}, decision{remove: true}},
		"deleted":           {deleted, "", "Running", podFilter{}, decision{remove: true}},
		"deleted long ago":  {deleted, "", "Running", podFilter{skipDeletedAfter: 5}, decision{}},
	} {
		t.Run(name, func(t *testing.T) {
			pod, err := unstructured.Decode([]byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {` + c.metadata + `},
				"spec": {` + c.spec + `}, "status": {"phase": "` + c.phase + `"}}`))
			require.NoError(t, err)
			c.filter.daemonSet = func(_ context.Context, _, name string) error {
				if name == "gone" {
					return apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "daemonsets"}, name)
				}
				return nil
			}
			assert.Equal(t, c.want, c.filter.decide(t.Context(), pod))
		})
	}
}

func TestRulesStatus_Rules(t *testing.T) {
	review, err := unstructured.Decode([]byte(`{"apiVersion": "v1", "kind": "R", "resourceRules": [
		{"verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods/log"]},
		{"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["pods/log"]},
		{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"]}],
		"nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]}`))
	require.NoError(t, err)
	status, err := unstructured.As[rulesStatus](review)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, writeRules(&b, status.rules(), false))
	assert.ElementsMatch(t, []string{
		"pods.apps/log   []           []    [get list]",
		"pods/log        []           []    [get list watch]",
		"secrets         []           [a]   [get]",
		"secrets         []           [b]   [get]",
		"                [/healthz]   []    [get]",
	}, strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"))
}

func TestSleep_EndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	assert.True(t, sleep(ctx, time.Millisecond))
	cancel()
	assert.False(t, sleep(ctx, time.Hour))
}
