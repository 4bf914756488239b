//go:build unix

package cluster

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const deployments = "/apis/apps/v1/namespaces/default/deployments"

// TestStart_WholeCluster runs a workload on fake nodes.
func TestStart_WholeCluster(t *testing.T) {
	c := startCluster(t, &Options{FeatureGates: map[string]bool{"WatchList": true}})
	admin := newCaller(t, c.Kubeconfig, "admin")
	labels := map[string]any{"app": "web"}
	admin.must(http.MethodPost, deployments, map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"replicas": 2, "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web", "stdin": true}}},
			},
		},
	}, nil)
	awaitAvailable(t, admin)
	var pods struct{ Items []object }
	admin.must(http.MethodGet, "/api/v1/namespaces/default/pods", nil, &pods)
	if len(pods.Items) != 2 {
		t.Fatalf("%d pods, want 2", len(pods.Items))
	}
	pod := pods.Items[0].Metadata.Name

	t.Run("pod log", func(t *testing.T) {
		if log := readPodLog(t, admin, pod); !strings.HasPrefix(log, "hello from the sandbox\n") {
			t.Errorf("the log is %q", log)
		}
		appendPodLog(t, c, "2024-01-01T00:00:02Z stdout F a test's own line\n")
		if log := readPodLog(t, admin, pod); !strings.HasSuffix(log, "a test's own line\n") {
			t.Errorf("the log is %q", log)
		}
	})
	t.Run("kubectl version", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), c.Kubectl, "version", "--client").Output()
		if want := "Client Version: " + c.Version + "\n"; err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("it printed %q and ended with %v, want %q", out, err, want)
		}
	})
	t.Run("kubectl exec", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), c.Kubectl, "--kubeconfig", c.Kubeconfig, "exec", "-i", pod, "--", "sh", "-c", "cat; exit 7")
		cmd.Stdin = strings.NewReader("typed\n")
		out, err := cmd.Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 7 || string(out) != "typed\n" {
			t.Errorf("it printed %q and ended with %v", out, err)
		}
	})
	t.Run("kubectl attach", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), c.Kubectl, "--kubeconfig", c.Kubeconfig, "attach", "-i", "-q", pod)
		cmd.Stdin = strings.NewReader("cat\ntyped\n")
		if out, err := cmd.Output(); err != nil || string(out) != "typed\n" {
			t.Errorf("it printed %q and ended with %v", out, err)
		}
	})
}

func awaitAvailable(t *testing.T, c *caller) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var deployment struct {
			Status struct {
				AvailableReplicas int
				Conditions        []struct{ Type, Status, Message string }
			}
		}
		c.must(http.MethodGet, deployments+"/web", nil, &deployment)
		if deployment.Status.AvailableReplicas == 2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the Deployment is not available: %+v", deployment.Status)
		}
	}
}

func readPodLog(t *testing.T, c *caller, pod string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.id.server+"/api/v1/namespaces/default/pods/"+pod+"/log", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text := new(strings.Builder)
	if _, err := io.Copy(text, response.Body); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func appendPodLog(t *testing.T, c *Cluster, line string) {
	t.Helper()
	file, err := os.OpenFile(c.PodLog(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(line)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}
