package clients_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/apitest/clients"
	"github.com/anykind/anykind/internal/testing/exampletest"
)

// In place of fake.NewClientset(settings): the server validates objects and detects conflicts.
func ExampleNew() {
	t, end := exampletest.New() // a test has its *testing.T
	defer end()

	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}, Data: map[string]string{"color": "red"}}
	c := clients.New(t, nil, settings)
	configMaps := c.Kubernetes.CoreV1().ConfigMaps("shop") // or c.Dynamic, c.Metadata, c.Client

	stored, err := configMaps.Get(t.Context(), "settings", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	stored.Data["color"] = "blue"
	stored.Data["not a key"] = ""
	_, err = configMaps.Update(t.Context(), stored, metav1.UpdateOptions{})
	fmt.Println(err)
	delete(stored.Data, "not a key")
	if _, err = configMaps.Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("%v", err)
	}
	for _, action := range c.Actions() {
		fmt.Println(action.GetVerb(), action.GetResource().Resource, action.GetNamespace())
	}
	// Output:
	// ConfigMap "settings" is invalid: data[not a key]: Invalid value: "not a key": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
	// get configmaps shop
	// update configmaps shop
	// update configmaps shop
}
