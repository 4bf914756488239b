package readiness_test

import (
	"fmt"

	"github.com/anykind/anykind/readiness"
	"github.com/anykind/anykind/unstructured"
)

func ExampleCompute() {
	deployment, err := unstructured.Decode([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","generation":2},
		"spec":{"replicas":3,"progressDeadlineSeconds":600},
		"status":{"observedGeneration":2,"replicas":4,"updatedReplicas":1,"readyReplicas":3,"availableReplicas":3,
			"conditions":[{"type":"Available","status":"True"}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	result := readiness.Compute(deployment, nil)
	fmt.Println(result.Status)
	fmt.Println(result.Field)
	fmt.Println(result.Message)
	// Output:
	// InProgress
	// status.updatedReplicas
	// 1 of 3 replicas are updated
}

// A rule can be written in Go or kept as JSON or YAML. This one makes a Job Current when it has completed, not when it has
// started.
func ExampleRule() {
	job, err := unstructured.Decode([]byte(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"migrate"},
		"status":{"startTime":"2026-01-02T03:04:05Z","active":1}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	completed := readiness.Rule{
		Group: "batch", Kind: "Job",
		Failed:  []readiness.Check{{Condition: "Failed"}},
		Current: []readiness.Check{{Condition: "Complete"}},
	}
	fmt.Println(readiness.Compute(job, nil))
	fmt.Println(readiness.Compute(job, &readiness.Options{Rules: []readiness.Rule{completed}}))
	// Output:
	// Current: the job has started: 1 pods active, 0 succeeded, 0 failed
	// InProgress: condition Complete does not exist
}

func ExampleRule_Validate() {
	fmt.Println(readiness.Rule{Kind: "Service", Current: []readiness.Check{{Field: "status.loadBalancer.ingress[0]"}}}.Validate())
	fmt.Println(readiness.Rule{Kind: "Service", Current: []readiness.Check{{}}}.Validate())
	// Output:
	// <nil>
	// rule for Service: current[0]: it needs either a condition or a field
}
