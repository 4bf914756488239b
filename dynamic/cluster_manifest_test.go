package dynamic_test

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/anykind/anykind/internal/testing/cluster"
	"github.com/anykind/anykind/unstructured"
)

const manifest = `# a page and who serves it
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data:
  index.html: |
    <h1>
    yes
  on: "off"
  number: "0x10"
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: &labels {app: web}}
  template:
    metadata: {labels: *labels}
    spec:
      containers:
      - {name: app, image: "web:1"}
`

// rollout is what somebody declares who cares for a few fields of a Deployment.
type rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Replicas int32                `json:"replicas"`
		Selector metav1.LabelSelector `json:"selector"`
		Strategy struct {
			RollingUpdate struct {
				MaxSurge intstr.IntOrString `json:"maxSurge"`
			} `json:"rollingUpdate"`
		} `json:"strategy"`
	} `json:"spec"`
}

func TestManifestIsSentChangedAndPrintedAsByKubectl(t *testing.T) {
	client, namespace := newNamespace(t)
	objects := unstructured.NewYAMLDecoder(strings.NewReader(manifest))
	for {
		obj, err := objects.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if obj.GetKind() == "Deployment" {
			containers := []string{"spec", "template", "spec", "containers"}
			require.NoError(t, unstructured.Set(obj, "web:2", append(containers, "[name=app]", "image")...))
			require.NoError(t, unstructured.Set(obj, "proxy:1", append(containers, "[name=proxy]", "image")...))
			require.NoError(t, unstructured.Set(obj, int32(80), append(containers, "[name=proxy]", "ports", "[containerPort=80,protocol=TCP]", "hostPort")...))
		}
		of, err := client.Of(t.Context(), obj)
		require.NoError(t, err)
		created, err := of.In(namespace).Create(t.Context(), obj, nil)
		require.NoError(t, err)

		if created.GetKind() == "Deployment" {
			image, _, err := unstructured.Get[string](created, "spec", "template", "spec", "containers", "[name=proxy]", "image")
			require.NoError(t, err)
			assert.Equal(t, "proxy:1", image)
			r, err := unstructured.As[rollout](created)
			require.NoError(t, err)
			assert.Equal(t, int32(2), r.Spec.Replicas)
			assert.Equal(t, map[string]string{"app": "web"}, r.Spec.Selector.MatchLabels)
			assert.Equal(t, intstr.FromString("25%"), r.Spec.Strategy.RollingUpdate.MaxSurge)
			assert.False(t, r.CreationTimestamp.IsZero())
		}
		if created.GetKind() == "ConfigMap" { // which nobody changes meanwhile
			output, err := exec.CommandContext(t.Context(), cluster.Kubectl(t), "--kubeconfig", cluster.Kubeconfig(t), "get", created.GetKind(), created.GetName(), "-n", namespace, "-o", "yaml").Output()
			require.NoError(t, err)
			_, err = unstructured.Delete(created, "metadata", "managedFields") // which kubectl does not show
			require.NoError(t, err)
			text, err := unstructured.EncodeYAML(created)
			require.NoError(t, err)
			assert.Equal(t, string(output), string(text))
		}
	}
}
