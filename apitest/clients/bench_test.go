package clients_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/anykind/anykind/apitest/clients"
)

// BenchmarkNew measures what a small unit test costs: a server or a fake with an object, a get, an update and a list.
func BenchmarkNew(b *testing.B) {
	typed := func(b *testing.B, c kubernetes.Interface) {
		b.Helper()
		resource := c.CoreV1().ConfigMaps("shop")
		obj, err := resource.Get(b.Context(), "settings", metav1.GetOptions{})
		require.NoError(b, err)
		obj.Data["color"] = "blue"
		_, err = resource.Update(b.Context(), obj, metav1.UpdateOptions{})
		require.NoError(b, err)
		_, err = resource.List(b.Context(), metav1.ListOptions{})
		require.NoError(b, err)
	}
	object := settings()
	object.ResourceVersion = ""
	b.Run("client-go/apitest", func(b *testing.B) {
		for b.Loop() {
			c := clients.New(loopTest{b}, nil, object)
			typed(b, c.Kubernetes)
			c.Server.Close()
		}
	})
	b.Run("client-go/NewClientset", func(b *testing.B) {
		for b.Loop() {
			typed(b, fake.NewClientset(object.DeepCopy()))
		}
	})
	b.Run("client-go/NewSimpleClientset", func(b *testing.B) {
		for b.Loop() {
			typed(b, fake.NewSimpleClientset(object.DeepCopy()))
		}
	})
	generic := func(b *testing.B, c crclient.Client) {
		b.Helper()
		obj := settings()
		require.NoError(b, c.Get(b.Context(), crclient.ObjectKeyFromObject(obj), obj))
		obj.Data["color"] = "blue"
		require.NoError(b, c.Update(b.Context(), obj))
		require.NoError(b, c.List(b.Context(), &corev1.ConfigMapList{}, crclient.InNamespace("shop")))
	}
	b.Run("controller-runtime/apitest", func(b *testing.B) {
		for b.Loop() {
			c := clients.New(loopTest{b}, nil, object)
			generic(b, c.Client)
			c.Server.Close()
		}
	})
	b.Run("controller-runtime/fake", func(b *testing.B) {
		for b.Loop() {
			generic(b, crfake.NewClientBuilder().WithObjects(object.DeepCopy()).Build())
		}
	})
}

// loopTest drops the cleanups of a loop's servers: the loop closes them.
type loopTest struct{ *testing.B }

func (loopTest) Cleanup(func()) {}
