package table

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

func coreCells(resource string) func(object) []any {
	switch resource {
	case "namespaces":
		return func(o object) []any { return []any{o.name(), o.text("status", "phase"), o.age()} }
	case "nodes":
		return printNode
	case "configmaps":
		return func(o object) []any { return []any{o.name(), o.count("data") + o.count("binaryData"), o.age()} }
	case "secrets":
		return func(o object) []any { return []any{o.name(), o.text("type"), o.count("data"), o.age()} }
	case "serviceaccounts", "deviceclasses.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io":
		return func(o object) []any { return []any{o.name(), o.age()} }
	case "events", "events.events.k8s.io":
		return printEvent
	case "resourcequotas":
		return printResourceQuota
	case "componentstatuses":
		return printComponentStatus
	case "leases.coordination.k8s.io":
		return func(o object) []any { return []any{o.name(), o.text("spec", "holderIdentity"), o.age()} }
	case "certificatesigningrequests.certificates.k8s.io":
		return printCertificateSigningRequest
	case "resourceclaims.resource.k8s.io":
		return func(o object) []any { return []any{o.name(), resourceClaimState(o), o.age()} }
	case "resourceslices.resource.k8s.io":
		return func(o object) []any {
			return []any{o.name(), o.text("spec", "nodeName"), o.text("spec", "driver"), o.text("spec", "pool", "name"), o.age()}
		}
	case "runtimeclasses.node.k8s.io":
		return func(o object) []any { return []any{o.name(), o.text("handler"), o.age()} }
	}
	return nil
}

func printNode(o object) []any {
	status := "Unknown"
	for _, condition := range o.list("status", "conditions") {
		if condition.text("type") == "Ready" {
			status = "NotReady"
			if condition.text("status") == "True" {
				status = "Ready"
			}
		}
	}
	if o.flag("spec", "unschedulable") {
		status += ",SchedulingDisabled"
	}
	info := o.at("status", "nodeInfo")
	kernel := info.textUnlessEmpty("<unknown>", "kernelVersion")
	if architecture := info.text("architecture"); architecture != "" {
		kernel += " (" + architecture + ")"
	}
	return []any{
		o.name(), status, nodeRoles(o), o.age(), info.text("kubeletVersion"), nodeAddress(o, "InternalIP"), nodeAddress(o, "ExternalIP"),
		info.textUnlessEmpty("<unknown>", "osImage"), kernel, info.textUnlessEmpty("<unknown>", "containerRuntimeVersion"),
	}
}

func nodeRoles(o object) string {
	var roles []string
	for key, value := range o.at("metadata", "labels").content {
		role, isRole := strings.CutPrefix(key, "node-role.kubernetes.io/")
		if key == "kubernetes.io/role" {
			role, isRole = value.(string)
		}
		if isRole && role != "" {
			roles = append(roles, role)
		}
	}
	if len(roles) == 0 {
		return "<none>"
	}
	slices.Sort(roles)
	return strings.Join(slices.Compact(roles), ",")
}

func nodeAddress(o object, addressType string) string {
	for _, address := range o.list("status", "addresses") {
		if address.text("type") == addressType {
			return address.text("address")
		}
	}
	return "<none>"
}

// printEvent prints events of both groups. They are the same objects with different field names.
func printEvent(o object) []any {
	involved := o.at("involvedObject")
	firstField := "firstTimestamp"
	lastField := "lastTimestamp"
	countField := "count"
	sourceField := "source"
	messageField := "message"
	controllerField := "reportingComponent"
	if strings.HasPrefix(o.text("apiVersion"), "events.k8s.io/") {
		involved = o.at("regarding")
		firstField = "deprecatedFirstTimestamp"
		lastField = "deprecatedLastTimestamp"
		countField = "deprecatedCount"
		sourceField = "deprecatedSource"
		messageField = "note"
		controllerField = "reportingController"
	}
	first := o.since(o.time(firstField))
	if o.time(firstField).IsZero() {
		first = o.since(o.time("eventTime"))
	}
	last := first
	count := o.number(countField)
	if moment := o.time(lastField); !moment.IsZero() {
		last = o.since(moment)
	}
	if o.has("series") {
		last = o.since(o.time("series", "lastObservedTime"))
		count = o.number("series", "count")
	} else if count == 0 {
		count = 1
	}
	target := strings.ToLower(involved.text("kind"))
	if name := involved.text("name"); name != "" {
		target += "/" + name
	}
	source := o.textUnlessEmpty(o.text(controllerField), sourceField, "component")
	if instance := o.textUnlessEmpty(o.text("reportingInstance"), sourceField, "host"); instance != "" {
		source += ", " + instance
	}
	return []any{
		last, o.text("type"), o.text("reason"), target, involved.text("fieldPath"), source, strings.TrimSpace(o.text(messageField)),
		first, count, o.name(),
	}
}

func printResourceQuota(o object) []any {
	var requests, limits []string
	names := make([]string, 0)
	for name := range o.at("status", "hard").content {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		text := fmt.Sprintf("%s: %s/%s", name, o.quantity("status", "used", name), o.quantity("status", "hard", name))
		if strings.HasPrefix(name, "limits.") {
			limits = append(limits, text)
		} else {
			requests = append(requests, text)
		}
	}
	return []any{o.name(), strings.Join(requests, ", "), strings.Join(limits, ", "), o.age()}
}

func printComponentStatus(o object) []any {
	status := "Unknown"
	message := ""
	failure := ""
	for _, condition := range o.list("conditions") {
		if condition.text("type") == "Healthy" {
			status = "Unhealthy"
			if condition.text("status") == "True" {
				status = "Healthy"
			}
			message = condition.text("message")
			failure = condition.text("error")
			break
		}
	}
	return []any{o.name(), status, message, failure}
}

func printCertificateSigningRequest(o object) []any {
	requested := "<none>"
	if o.has("spec", "expirationSeconds") {
		requested = duration.HumanDuration(time.Duration(o.number("spec", "expirationSeconds")) * time.Second)
	}
	types := map[string]bool{}
	for _, condition := range o.list("status", "conditions") {
		types[condition.text("type")] = true
	}
	status := "Pending"
	switch {
	case types["Denied"]:
		status = "Denied"
	case types["Approved"]:
		status = "Approved"
	}
	if types["Failed"] {
		status += ",Failed"
	}
	if o.text("status", "certificate") != "" {
		status += ",Issued"
	}
	return []any{
		o.name(), o.age(), o.textUnlessEmpty("<none>", "spec", "signerName"), o.text("spec", "username"), requested, status,
	}
}

func resourceClaimState(o object) string {
	var states []string
	if o.isDeleted() {
		states = append(states, "deleted")
	}
	switch {
	case o.has("status", "allocation"):
		states = append(states, "allocated")
		if o.count("status", "reservedFor") > 0 {
			states = append(states, "reserved")
		}
	case !o.isDeleted():
		states = append(states, "pending")
	}
	return strings.Join(states, ",")
}
