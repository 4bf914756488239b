package table

import (
	"fmt"
	"strings"
)

func policyCells(resource string) func(object) []any {
	switch resource {
	case "horizontalpodautoscalers.autoscaling":
		return printHorizontalPodAutoscaler
	case "poddisruptionbudgets.policy":
		return printPodDisruptionBudget
	case "rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io":
		return printRoleBinding
	case "priorityclasses.scheduling.k8s.io":
		return func(o object) []any {
			return []any{o.name(), o.number("value"), o.flag("globalDefault"), o.age(), o.text("preemptionPolicy")}
		}
	case "mutatingwebhookconfigurations.admissionregistration.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io":
		return func(o object) []any { return []any{o.name(), o.count("webhooks"), o.age()} }
	case "validatingadmissionpolicies.admissionregistration.k8s.io":
		return func(o object) []any { return []any{o.name(), o.count("spec", "validations"), paramKind(o), o.age()} }
	case "mutatingadmissionpolicies.admissionregistration.k8s.io":
		return func(o object) []any { return []any{o.name(), o.count("spec", "mutations"), paramKind(o), o.age()} }
	case "validatingadmissionpolicybindings.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.admissionregistration.k8s.io":
		return func(o object) []any { return []any{o.name(), o.text("spec", "policyName"), paramName(o), o.age()} }
	case "apiservices.apiregistration.k8s.io":
		return printAPIService
	case "flowschemas.flowcontrol.apiserver.k8s.io":
		return printFlowSchema
	case "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io":
		return printPriorityLevel
	}
	return nil
}

func printPodDisruptionBudget(o object) []any {
	intOrString := func(field string) string {
		if value := o.value("spec", field); value != nil {
			return fmt.Sprint(value)
		}
		return "N/A"
	}
	return []any{o.name(), intOrString("minAvailable"), intOrString("maxUnavailable"), o.number("status", "disruptionsAllowed"), o.age()}
}

func printRoleBinding(o object) []any {
	var users, groups, accounts []string
	for _, subject := range o.list("subjects") {
		switch subject.text("kind") {
		case "ServiceAccount":
			accounts = append(accounts, subject.text("namespace")+"/"+subject.text("name"))
		case "User":
			users = append(users, subject.text("name"))
		case "Group":
			groups = append(groups, subject.text("name"))
		}
	}
	return []any{
		o.name(), o.text("roleRef", "kind") + "/" + o.text("roleRef", "name"), o.age(),
		strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", "),
	}
}

func paramKind(o object) string {
	if !o.has("spec", "paramKind") {
		return "<unset>"
	}
	return o.text("spec", "paramKind", "apiVersion") + "/" + o.text("spec", "paramKind", "kind")
}

func paramName(o object) string {
	ref := o.at("spec", "paramRef")
	switch {
	case ref.text("name") != "":
		return ref.textUnlessEmpty("*", "namespace") + "/" + ref.text("name")
	case ref.has("selector"):
		if selector, err := ref.labelSelector("selector"); err == nil {
			return selector.String()
		}
	}
	return "<unset>"
}

func printAPIService(o object) []any {
	service := "Local"
	if o.has("spec", "service") {
		service = o.text("spec", "service", "namespace") + "/" + o.text("spec", "service", "name")
	}
	available := "Unknown"
	for _, condition := range o.list("status", "conditions") {
		if condition.text("type") == "Available" {
			available = condition.text("status")
			if reason := condition.text("reason"); available != "True" && reason != "" {
				available += " (" + reason + ")"
			}
			break
		}
	}
	return []any{o.name(), service, available, o.age()}
}

func printFlowSchema(o object) []any {
	dangling := "?"
	for _, condition := range o.list("status", "conditions") {
		if condition.text("type") == "Dangling" {
			dangling = condition.text("status")
			break
		}
	}
	return []any{
		o.name(), o.text("spec", "priorityLevelConfiguration", "name"), o.number("spec", "matchingPrecedence"),
		o.textOr("<none>", "spec", "distinguisherMethod", "type"), o.age(), dangling,
	}
}

func printPriorityLevel(o object) []any {
	cells := []any{o.name(), o.text("spec", "type"), "<none>", "<none>", "<none>", "<none>", o.age()}
	if limited := o.at("spec", "limited"); limited.content != nil {
		cells[2] = limited.value("nominalConcurrencyShares")
		if queuing := limited.at("limitResponse", "queuing"); queuing.content != nil {
			cells[3] = queuing.number("queues")
			cells[4] = queuing.number("handSize")
			cells[5] = queuing.number("queueLengthLimit")
		}
	}
	return cells
}
