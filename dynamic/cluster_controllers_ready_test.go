package dynamic_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/dynamic"
	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

// The tests of this file run before those that restart the API server: controllers take up to half a minute to come back.

// outcome is how a rollout ends.
type outcome int

const (
	completes outcome = iota
	fails             // the progress deadline is exceeded
	hangs             // it neither completes nor fails
)

// rolloutStep is a change of a workload and how its rollout ends.
type rolloutStep struct {
	name    string
	change  string // a merge patch
	outcome outcome
}

// hangTime is how long a rollout is watched that hangs.
const hangTime = 5 * time.Second

// TestReady_MatchesKubectlRolloutStatus rolls workloads out, waits with Ready and with kubectl rollout status at the same time
// and compares how both end.
func TestReady_MatchesKubectlRolloutStatus(t *testing.T) {
	cluster.NeedComponents(t, cluster.ControllerManager, cluster.Scheduler, cluster.Nodes)
	client, namespace := newNamespace(t)
	const (
		newImage    = `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`
		noNode      = `{"spec":{"template":{"spec":{"nodeSelector":{"none":"none"}}}}}`
		noSelection = `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`
		tooLarge    = `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2","resources":{"requests":{"cpu":"1000000"}}}]}}}}`
	)
	for kind, steps := range map[string][]rolloutStep{
		"Deployment": {
			{"created", "", completes},
			{"updated", newImage, completes},
			{"scaled", `{"spec":{"replicas":4}}`, completes},
			{"deadline exceeded", `{"spec":{"progressDeadlineSeconds":2,"template":{"spec":{"nodeSelector":{"none":"none"}}}}}`, fails},
			{"undone", `{"spec":{"progressDeadlineSeconds":60,"template":{"spec":{"nodeSelector":null}}}}`, completes},
			{"paused", `{"spec":{"paused":true}}`, completes},
			{"updated when paused", noNode, hangs},
			{"scaled to zero", `{"spec":{"paused":false,"replicas":0,"template":{"spec":{"nodeSelector":null}}}}`, completes},
		},
		"StatefulSet": {
			{"created", "", completes},
			{"updated", newImage, completes},
			{"scaled", `{"spec":{"replicas":1}}`, completes},
			{"unschedulable", noNode, hangs},
		},
		"DaemonSet": {
			{"created", "", completes},
			{"updated", newImage, completes},
			{"no nodes", noNode, completes},
			{"all nodes", noSelection, completes},
			{"unschedulable", tooLarge, hangs},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			of := resource(t, client, kind).Namespace(namespace)
			workload := deployment("web-" + strings.ToLower(kind)) // its labels select none of the other workloads' pods
			workload.SetName("web")
			workload.SetKind(kind)
			require.NoError(t, unstructured.Set(workload, 2, "spec", "replicas"))
			if kind == "DaemonSet" {
				_, err := unstructured.Delete(workload, "spec", "replicas")
				require.NoError(t, err)
			}
			for _, step := range steps {
				t.Run(step.name, func(t *testing.T) {
					if step.change == "" {
						_, err := of.Create(t.Context(), workload, nil)
						require.NoError(t, err)
					} else {
						_, err := of.Patch(t.Context(), "web", types.MergePatchType, []byte(step.change), nil)
						require.NoError(t, err)
					}
					compareRollout(t, of, namespace, kind, step.outcome)
				})
			}
		})
	}
}

func compareRollout(t *testing.T, of *dynamic.Resource, namespace, kind string, want outcome) {
	t.Helper()
	limit := 2 * patience
	if want == hangs {
		limit = hangTime
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	kubectl := cluster.Kubectl(t)
	kubeconfig := cluster.Kubeconfig(t)
	cacheDir := t.TempDir()
	rolloutStatus := func(args ...string) (string, error) {
		args = append([]string{"--kubeconfig", kubeconfig, "--cache-dir", cacheDir, "-n", namespace, "rollout", "status", kind + "/web"}, args...)
		output, err := exec.CommandContext(t.Context(), kubectl, args...).CombinedOutput()
		return string(output), err
	}
	kubectlDone := make(chan struct{})
	var output string
	var kubectlErr error
	go func() {
		defer close(kubectlDone)
		output, kubectlErr = rolloutStatus(fmt.Sprintf("--timeout=%s", limit))
	}()
	_, err := of.Wait(ctx, "web", dynamic.Ready())
	switch want {
	case completes:
		require.NoError(t, err)
		now, nowErr := rolloutStatus("--watch=false")
		require.NoError(t, nowErr, now)
		assert.Regexp(t, "successfully rolled out|roll out complete", now, "Ready holds before kubectl says so")
		<-kubectlDone
		require.NoError(t, kubectlErr, output)
	case fails:
		var failed *dynamic.ReadinessError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, "status.conditions[type=Progressing].reason", failed.Result.Field)
		_, err = of.Wait(ctx, "web", dynamic.Condition("Available"))
		require.NoError(t, err, "as documented: enough replicas of the old version are available")
		<-kubectlDone
		require.Error(t, kubectlErr, output)
		assert.Contains(t, output, "exceeded its progress deadline")
	case hangs:
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "it is InProgress: ")
		t.Log(err)
		<-kubectlDone
		require.Error(t, kubectlErr, output)
		assert.Contains(t, output, "timed out waiting for the condition")
	}
}
