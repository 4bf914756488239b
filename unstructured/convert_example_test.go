package unstructured_test

import (
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/unstructured"
)

// Cron is a type of a user of the library.
type Cron struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              CronSpec `json:"spec"`
}

// CronSpec is its specification.
type CronSpec struct {
	Schedule string `json:"schedule"`
	Retries  int32  `json:"retries,omitempty"`
}

func ExampleAs() {
	obj, err := unstructured.Decode([]byte(`{"kind":"Cron","apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":{"schedule":"@daily","retries":3}}`))
	if err != nil {
		log.Fatal(err)
	}
	cron, err := unstructured.As[Cron](obj)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cron.Name, cron.Spec.Schedule, cron.Spec.Retries)

	if err := unstructured.Set(obj, "three", "spec", "retries"); err != nil {
		log.Fatal(err)
	}
	_, err = unstructured.As[Cron](obj)
	fmt.Println(err)
	// Output:
	// a @daily 3
	// .spec.retries: is string, not int32
}

func ExampleInto() {
	types := map[schema.GroupVersionKind]func() any{ // such as a runtime.Scheme
		{Group: "example.com", Version: "v1", Kind: "Cron"}: func() any { return &Cron{} },
	}
	obj, err := unstructured.Decode([]byte(`{"kind":"Cron","apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":{"schedule":"@daily"}}`))
	if err != nil {
		log.Fatal(err)
	}
	into := types[obj.GroupVersionKind()]()
	if err := unstructured.Into(obj, into); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%T %s\n", into, into.(*Cron).Spec.Schedule)
	// Output: *unstructured_test.Cron @daily
}

func ExampleFrom() {
	obj, err := unstructured.From(&Cron{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Cron"},
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       CronSpec{Schedule: "@daily"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(obj.GroupVersionKind(), obj.Object["metadata"], obj.Object["spec"])
	// Output:
	// example.com/v1, Kind=Cron map[name:a] map[schedule:@daily]
}
