package unstructured

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// somePod has fields of every sort that built-in types have.
type somePod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              somePodSpec   `json:"spec,omitempty"`
	Status            somePodStatus `json:"status,omitempty"`
}

type somePodSpec struct {
	NodeName                      string            `json:"nodeName,omitempty"`
	TerminationGracePeriodSeconds *int64            `json:"terminationGracePeriodSeconds,omitempty"`
	NodeSelector                  map[string]string `json:"nodeSelector,omitempty"`
	Priority                      *int32            `json:"priority,omitempty"`
	Containers                    []someContainer   `json:"containers"`
}

type someContainer struct {
	Name      string     `json:"name"`
	Image     string     `json:"image,omitempty"`
	Command   []string   `json:"command,omitempty"`
	Args      []string   `json:"args,omitempty"`
	Ports     []somePort `json:"ports,omitempty"`
	Env       []someEnv  `json:"env,omitempty"`
	Resources struct {
		Limits   map[string]resource.Quantity `json:"limits,omitempty"`
		Requests map[string]resource.Quantity `json:"requests,omitempty"`
	} `json:"resources,omitempty"`
	LivenessProbe *someProbe `json:"livenessProbe,omitempty"`
}

type somePort struct {
	Name          string `json:"name,omitempty"`
	ContainerPort int32  `json:"containerPort"`
	Protocol      string `json:"protocol,omitempty"`
}

type someEnv struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

type someProbe struct {
	HTTPGet *struct {
		Path string             `json:"path,omitempty"`
		Port intstr.IntOrString `json:"port"`
	} `json:"httpGet,omitempty"`
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
}

type somePodStatus struct {
	Phase      string             `json:"phase,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	PodIP      string             `json:"podIP,omitempty"`
	StartTime  *metav1.Time       `json:"startTime,omitempty"`
}

func BenchmarkAs(b *testing.B) {
	data := sample(b, "pod.json")
	obj, err := Decode(data)
	require.NoError(b, err)
	bench(b, "anykind", len(data), func() error {
		_, err := As[somePod](obj)
		return err
	})
	l, err := DecodeLazy(data)
	require.NoError(b, err)
	bench(b, "lazy", len(data), func() error {
		_, err := As[somePod](l)
		return err
	})
	bench(b, "apimachinery", len(data), func() error {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, new(somePod))
	})
}
