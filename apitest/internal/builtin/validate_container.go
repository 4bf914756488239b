package builtin

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

func (c *checker) containers(at *field.Path, containers []object, volumes, names map[string]bool, isInit bool) {
	hostPorts := map[string]bool{}
	for i, container := range containers {
		at := at.Index(i)
		name := nested.String(container, "name")
		if name == "" {
			c.add(field.Required(at.Child("name"), ""))
		} else {
			c.label(at.Child("name"), name)
		}
		c.require(at, container, "image")
		c.oneOf(at, container, "terminationMessagePolicy", "File", "FallbackToLogsOnError")
		c.containerPorts(at.Child("ports"), nested.Maps(container, "ports"))
		c.environment(at, container)
		c.volumeMounts(at, container, volumes)
		c.oneOf(at, container, "imagePullPolicy", "Always", "IfNotPresent", "Never")
		c.resources(at.Child("resources"), nested.Map(container, "resources"))
		if names[name] {
			c.add(field.Duplicate(at.Child("name"), name))
		}
		names[name] = true
		c.containerProbes(at, container, isInit && nested.String(container, "restartPolicy") != "Always")
		for j, port := range nested.Maps(container, "ports") {
			number := nested.Int64(port, "hostPort")
			key := fmt.Sprintf("%s//%d", nested.String(port, "protocol"), number)
			if number != 0 && hostPorts[key] {
				c.add(field.Duplicate(at.Child("ports").Index(j).Child("hostPort"), key))
			}
			hostPorts[key] = true
		}
	}
}

func (c *checker) containerPorts(at *field.Path, ports []object) {
	names := map[string]bool{}
	for i, port := range ports {
		at := at.Index(i)
		if name := nested.String(port, "name"); name != "" {
			messages := validation.IsValidPortName(name)
			c.invalid(at.Child("name"), name, messages...)
			if len(messages) == 0 && names[name] {
				c.add(field.Duplicate(at.Child("name"), name))
			}
			names[name] = true
		}
		if n := nested.Int64(port, "containerPort"); n == 0 {
			c.add(field.Required(at.Child("containerPort"), ""))
		} else {
			c.invalid(at.Child("containerPort"), n, validation.IsValidPortNum(int(n))...)
		}
		if n := nested.Int64(port, "hostPort"); n != 0 {
			c.invalid(at.Child("hostPort"), n, validation.IsValidPortNum(int(n))...)
		}
		c.oneOf(at, port, "protocol", "SCTP", "TCP", "UDP")
	}
}

func (c *checker) environment(at *field.Path, container object) {
	for i, variable := range nested.Maps(container, "env") {
		at := at.Child("env").Index(i)
		if name := nested.String(variable, "name"); name == "" {
			c.add(field.Required(at.Child("name"), ""))
		} else {
			c.invalid(at.Child("name"), name, validation.IsRelaxedEnvVarName(name)...)
		}
		if from := nested.Map(variable, "valueFrom"); from != nil {
			c.variableSource(at.Child("valueFrom"), from, nested.String(variable, "value"))
		}
	}
	for i, source := range nested.Maps(container, "envFrom") {
		at := at.Child("envFrom").Index(i)
		config := nested.Map(source, "configMapRef")
		secret := nested.Map(source, "secretRef")
		switch {
		case config == nil && secret == nil:
			c.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`")
		case config != nil && secret != nil:
			c.invalid(at, "", "may not have more than one field specified at a time")
		case config != nil:
			c.require(at.Child("configMapRef"), config, "name")
		default:
			c.require(at.Child("secretRef"), secret, "name")
		}
	}
}

func (c *checker) variableSource(at *field.Path, from object, value string) {
	count := 0
	for _, name := range []string{"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"} {
		ref := nested.Map(from, name)
		if ref == nil {
			continue
		}
		count++
		switch at := at.Child(name); name {
		case "configMapKeyRef", "secretKeyRef":
			c.require(at, ref, "name")
			if c.require(at, ref, "key") {
				c.invalid(at.Child("key"), nested.String(ref, "key"), validation.IsConfigMapKey(nested.String(ref, "key"))...)
			}
		case "fieldRef":
			c.require(at, ref, "fieldPath")
		case "resourceFieldRef":
			c.require(at, ref, "resource")
		}
	}
	switch {
	case count == 0:
		c.invalid(at, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
	case value != "":
		c.invalid(at, "", "may not be specified when `value` is not empty")
	case count > 1:
		c.invalid(at, "", "may not have more than one field specified at a time")
	}
}

func (c *checker) volumeMounts(at *field.Path, container object, volumes map[string]bool) {
	paths := map[string]bool{}
	for i, mount := range nested.Maps(container, "volumeMounts") {
		one := at.Child("volumeMounts").Index(i)
		c.require(one, mount, "name")
		if name := nested.String(mount, "name"); !volumes[name] {
			c.add(field.NotFound(one.Child("name"), name))
		}
		c.require(one, mount, "mountPath")
		mountPath := nested.String(mount, "mountPath")
		if paths[mountPath] {
			c.invalid(one.Child("mountPath"), mountPath, "must be unique")
		}
		paths[mountPath] = true
		for _, name := range []string{"subPath", "subPathExpr"} {
			if sub := nested.String(mount, name); sub != "" {
				if path.IsAbs(sub) {
					c.invalid(at.Child("volumeMounts").Child(name), sub, "must be a relative path")
				}
				c.noBacksteps(at.Child("volumeMounts").Child(name), sub)
			}
		}
		if nested.String(mount, "subPath") != "" && nested.String(mount, "subPathExpr") != "" {
			c.invalid(one.Child("subPathExpr"), nested.String(mount, "subPathExpr"), "subPathExpr and subPath are mutually exclusive")
		}
	}
}

// resources checks requests against limits. Only CPU, memory and ephemeral storage may be requested below their limit.
func (c *checker) resources(at *field.Path, resources object) {
	limits := nested.Map(resources, "limits")
	requests := nested.Map(resources, "requests")
	hasPages := false
	hasStandard := false
	for _, name := range []string{"limits", "requests"} {
		for kind, value := range nested.Map(resources, name) {
			at := at.Child(name).Key(kind)
			c.resourceName(at, kind)
			if q := quantity(value); q.Sign() < 0 {
				c.invalid(at, q.String(), "must be greater than or equal to 0")
			} else {
				c.wholeResource(at, kind, q)
			}
			hasPages = hasPages || strings.HasPrefix(kind, hugePages)
			hasStandard = hasStandard || kind == "cpu" || kind == "memory"
		}
	}
	if hasPages && !hasStandard {
		c.add(field.Forbidden(at, "HugePages require cpu or memory"))
	}
	for name, value := range requests {
		request := quantity(value)
		limit := quantity(limits[name])
		overcommit := !strings.Contains(name, "/") && !strings.HasPrefix(name, hugePages)
		switch {
		case limits[name] == nil && !overcommit:
			c.add(field.Required(at.Child("limits"), "Limit must be set for non overcommitable resources"))
		case limits[name] == nil:
		case !overcommit && request.Cmp(limit) != 0:
			c.invalid(at.Child("requests"), request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))
		case request.Cmp(limit) > 0:
			c.invalid(at.Child("requests"), request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String()))
		}
	}
}

const hugePages = "hugepages-"

// wholeResource adds an error for a part of a huge page or of an extended resource.
func (c *checker) wholeResource(at *field.Path, name string, q resource.Quantity) {
	size, isPage := strings.CutPrefix(name, hugePages)
	switch {
	case isPage:
		if page := quantity(size); page.Sign() > 0 && (q.Value()%page.Value() != 0 || q.MilliValue()%1000 != 0) {
			c.invalid(at, q.String(), "not a multiple of the page")
		}
	case strings.Contains(name, "/") && q.MilliValue()%1000 != 0:
		c.invalid(at, q.String(), "must be an integer")
	}
}

func (c *checker) resourceName(at *field.Path, name string) {
	c.invalid(at, name, validation.IsQualifiedName(name)...)
	standard := []string{"cpu", "memory", "ephemeral-storage"}
	if !strings.Contains(name, "/") && !slices.Contains(standard, name) && !strings.HasPrefix(name, hugePages) {
		c.invalid(at, name, "must be a standard resource for containers")
	}
}

func (c *checker) containerProbes(at *field.Path, container object, isInit bool) {
	for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		probe := nested.Map(container, name)
		switch at := at.Child(name); {
		case probe == nil:
		case isInit:
			c.add(field.Forbidden(at, "may not be set for init containers without restartPolicy=Always"))
		default:
			c.handler(at, probe)
			c.nonNegative(at, probe, "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
			if n := nested.Int64(probe, "successThreshold"); name != "readinessProbe" && n != 1 && n >= 0 {
				c.invalid(at.Child("successThreshold"), n, "must be 1")
			}
		}
	}
	for _, name := range []string{"postStart", "preStop"} {
		hook := nested.Map(container, "lifecycle", name)
		switch at := at.Child("lifecycle"); {
		case hook == nil:
		case isInit:
			c.add(field.Forbidden(at, "may not be set for init containers without restartPolicy=Always"))
			return
		default:
			c.handler(at.Child(name), hook)
		}
	}
}

func (c *checker) handler(at *field.Path, handler object) {
	found := false
	for _, name := range []string{"exec", "httpGet", "tcpSocket", "grpc", "sleep"} {
		action := nested.Map(handler, name)
		switch at := at.Child(name); {
		case action == nil:
			continue
		case found:
			c.add(field.Forbidden(at, "may not specify more than 1 handler type"))
			continue
		case name == "exec":
			c.require(at, action, "command")
		case name == "httpGet":
			c.require(at, action, "path")
			c.portOrName(at.Child("port"), action["port"])
			c.oneOf(at, action, "scheme", "HTTP", "HTTPS")
		case name == "tcpSocket", name == "grpc":
			c.portOrName(at.Child("port"), action["port"])
		}
		found = true
	}
	if !found {
		c.add(field.Required(at, "must specify a handler type"))
	}
}
