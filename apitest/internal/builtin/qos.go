package builtin

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

func increment(n string) string {
	i, _ := strconv.Atoi(n)
	return strconv.Itoa(i + 1)
}

// qosClass returns the quality of service of a pod by its containers' requests and limits of CPU and memory.
func qosClass(spec object) string {
	containers := append(objects(spec, "initContainers"), objects(spec, "containers")...)
	if resources := child(spec, "resources"); resources != nil { // those of the whole pod take precedence
		containers = []object{{"resources": resources}}
	}
	specified, guaranteed := false, true
	for _, container := range containers {
		requests, limits := child(container, "resources", "requests"), child(container, "resources", "limits")
		for _, name := range []string{"cpu", "memory"} {
			request, limit := quantity(requests[name]), quantity(limits[name])
			specified = specified || !request.IsZero() || !limit.IsZero()
			if limit.IsZero() || requests[name] != nil && request.Cmp(limit) != 0 {
				guaranteed = false
			}
		}
	}
	switch {
	case !specified:
		return "BestEffort"
	case guaranteed:
		return "Guaranteed"
	}
	return "Burstable"
}

func quantity(value any) resource.Quantity {
	s, _ := value.(string)
	q, _ := resource.ParseQuantity(s)
	return q
}
