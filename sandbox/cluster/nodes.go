//go:build unix

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// NodeLabel is a label of the fake nodes.
const NodeLabel = "anykind.sandbox/fake-node"

// kwokRules configure the behavior of fake pods. Logs and attach read files that tests may append to. Attach with input or a
// terminal, whatever the pod's spec, is a shell that runs each line. Exec runs the command on this machine as the user. A
// forwarded port echoes its input. Exceptions are 8080 (the fake kubelet's HTTP server), 2 (a shell runs the first line) and 1
// (refuses connections).
const kwokRules = `---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata: {name: all}
spec: {logs: [{logsFile: %[1]q, previousLogsFile: %[2]q}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterAttach
metadata: {name: all}
spec: {attaches: [{logsFile: %[1]q}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterExec
metadata: {name: all}
spec: {execs: [{local: {workDir: %[3]q}}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata: {name: all}
spec:
  forwards:
  - ports: [8080]
    target: {address: 127.0.0.1, port: %[4]d}
  - ports: [1]
    target: {address: 127.0.0.1, port: 1}
  - ports: [2]
    command: [sh, -c, 'read -r line; eval "$line"']
  - command: [cat]
`

// Log lines in the format of the container runtime interface.
const (
	podLog         = "2024-01-01T00:00:00.000000000Z stdout F hello from the sandbox\n2024-01-01T00:00:01.000000000Z stderr F a line on stderr\n"
	previousPodLog = "2023-12-31T00:00:00.000000000Z stdout F hello from before the restart\n"
)

// PodLog returns the path of the log file of all pods. Lines have the form "2006-01-02T15:04:05.999999999Z stdout F text".
func (c *Cluster) PodLog() string { return filepath.Join(c.Dir, "pod.log") }

func (c *Cluster) newNodes(port int, stagesPath string) (*member, error) {
	config, err := c.writeKwokFiles(port, stagesPath)
	if err != nil {
		return nil, err
	}
	url := httpsURL(port)
	return &member{
		component: Nodes, url: url, probe: c.httpsProbe(url + "/healthz"),
		args: []string{
			"--kubeconfig=" + c.Kubeconfig, "--config=" + config,
			"--manage-all-nodes=true", "--node-lease-duration-seconds=40",
			"--node-ip=" + loopback, fmt.Sprintf("--node-port=%d", port),
			fmt.Sprintf("--server-address=%s:%d", loopback, port),
			"--tls-cert-file=" + c.pki.cert("serving"), "--tls-private-key-file=" + c.pki.key("serving"),
		},
	}, nil
}

func (c *Cluster) writeKwokFiles(port int, stagesPath string) (config string, err error) {
	stages, err := os.ReadFile(stagesPath)
	if err != nil {
		return "", fmt.Errorf("read the stages of fake nodes: %w (delete the kwok files in the same folder to build them again)", err)
	}
	previous := filepath.Join(c.Dir, "pod-previous.log")
	rules := fmt.Appendf(stages, kwokRules, c.PodLog(), previous, filepath.Join(c.Dir, "pods"), port)
	config = filepath.Join(c.Dir, "kwok.yaml")
	for path, text := range map[string][]byte{config: rules, c.PodLog(): []byte(podLog), previous: []byte(previousPodLog)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return "", fmt.Errorf("write the configuration of kwok: %w", err)
		}
	}
	return config, nil
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }

// createNodes creates the Node objects managed by kwok.
func (c *Cluster) createNodes(ctx context.Context) error {
	for i := range c.options.Nodes {
		err := c.create(ctx, "/api/v1/nodes", map[string]any{
			"apiVersion": "v1", "kind": "Node",
			"metadata": map[string]any{
				"name":        nodeName(i),
				"annotations": map[string]string{"kwok.x-k8s.io/node": "fake"},
				"labels": map[string]string{
					NodeLabel: "true", "kubernetes.io/hostname": nodeName(i), "kubernetes.io/os": "linux",
				},
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// nodeReady returns a probe for node i being ready and schedulable.
func (c *Cluster) nodeReady(i int) func(context.Context) error {
	return func(ctx context.Context) error {
		var node struct {
			Spec   struct{ Taints []json.RawMessage }
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
		if err := get(ctx, c.client, c.serverURL()+"/api/v1/nodes/"+nodeName(i), &node); err != nil {
			return err
		}
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("node %s is tainted: %s", nodeName(i), node.Spec.Taints)
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" {
				return nil
			}
		}
		return fmt.Errorf("node %s is not ready", nodeName(i))
	}
}
