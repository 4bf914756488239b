package stream_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/stream"
	"github.com/anykind/anykind/unstructured"
)

func TestLogLines_SelectorSameAsKubectl(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "first", "second")
	run(t, pods, named("web-1"), "only")
	logged(t)("one", "", "two ü")
	out, _, code := kubectl(t, "", "logs", "-n", namespaceOf(t, pods), "-l", "app=web", "--all-containers", "--prefix", "--tail=-1")
	require.Zero(t, code)
	want := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for _, filtered := range []bool{false, true} {
		var got, ended []string
		opts := &stream.LogOptions{
			Selector: "app=web",
			OnEnd:    func(s stream.LogSource, reason string) { ended = append(ended, s.Pod+"/"+s.Container+" "+reason) },
		}
		if filtered {
			opts.Filter = func(s stream.LogSource) bool {
				return s.IsDefault && s.Node != "" && s.Labels["app"] == "web"
			}
		}
		for line, err := range stream.LogLines(t.Context(), pods, opts) {
			require.NoError(t, err)
			got = append(got, fmt.Sprintf("[pod/%s/%s] %s", line.Pod, line.Container, line.Text))
		}
		if !filtered {
			assert.ElementsMatch(t, want, got)
			assert.ElementsMatch(t, []string{"web-0/first Complete", "web-0/second Complete", "web-1/only Complete"}, ended)
			continue
		}
		var rest []string
		for _, line := range want {
			if !strings.HasPrefix(line, "[pod/web-0/second]") {
				rest = append(rest, line)
			}
		}
		assert.ElementsMatch(t, rest, got)
	}
}

// asLimited returns a handle on the same pods for the user "limited", who may list them and read the log of web-0 alone.
func asLimited(t *testing.T, pods *dynamic.Resource) *dynamic.Resource {
	t.Helper()
	admin := connect(t, "admin")
	namespace := namespaceOf(t, pods)
	const group = "rbac.authorization.k8s.io"
	for resource, object := range map[string]map[string]any{
		"roles": {"rules": []any{
			map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get", "list", "watch"}},
			map[string]any{"apiGroups": []any{""}, "resources": []any{"pods/log"}, "resourceNames": []any{"web-0"}, "verbs": []any{"get"}},
		}},
		"rolebindings": {
			"roleRef":  map[string]any{"apiGroup": group, "kind": "Role", "name": "log-reader"},
			"subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": "limited"}},
		},
	} {
		object["metadata"] = map[string]any{"name": "log-reader"}
		handle, err := admin.Resource(t.Context(), resource)
		require.NoError(t, err)
		_, err = handle.Namespace(namespace).Create(t.Context(), &unstructured.Object{Object: object}, nil)
		require.NoError(t, err)
	}
	handle, err := connect(t, "limited").Resource(t.Context(), "pods")
	require.NoError(t, err)
	handle = handle.Namespace(namespace)
	require.Eventually(t, func() bool { // the rights take effect a moment later
		_, err := handle.Get(t.Context(), "web-0", nil)
		return err == nil
	}, patience, 50*time.Millisecond)
	return handle
}

func TestLogLines_ForbiddenLogKeepsOthers(t *testing.T) {
	pods := podsOf(t)
	run(t, pods, named("web-0"), "first", "second")
	run(t, pods, named("web-1"), "only")
	user := asLimited(t, pods)
	write := logged(t)
	write("one")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var started, ended []string
	failed := map[string]error{}
	deleted := false
	opts := &stream.LogOptions{
		Follow:  true,
		Filter:  func(s stream.LogSource) bool { return s.Container != "second" },
		OnStart: func(s stream.LogSource) { started = append(started, s.Pod+"/"+s.Container) },
		OnError: func(s stream.LogSource, err error) { failed[s.Pod] = err; write("after the error") },
		OnEnd: func(s stream.LogSource, reason string) {
			ended = append(ended, s.Pod+"/"+s.Container)
			if s.Pod == "web-0" {
				cancel()
			}
		},
	}
	var last error
	for line, err := range stream.LogLines(ctx, user, opts) {
		if last = err; err != nil {
			break
		}
		assert.Equal(t, "web-0/first", line.Pod+"/"+line.Container)
		if line.Text == "after the error" && !deleted {
			deleted = true
			zero := int64(0)
			_, err := pods.Delete(t.Context(), "web-0", &metav1.DeleteOptions{GracePeriodSeconds: &zero})
			require.NoError(t, err)
		}
	}
	require.ErrorIs(t, last, context.Canceled)
	require.Len(t, failed, 1)
	assert.True(t, apierrors.IsForbidden(failed["web-1"]), "%v", failed["web-1"])
	assert.ElementsMatch(t, []string{"web-0/first", "web-1/only"}, started)
	assert.ElementsMatch(t, []string{"web-1/only", "web-0/first"}, ended)
}
