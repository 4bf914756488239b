package builtin

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// apply adds the errors of a field's rules. An empty value of an optional field that is not a pointer counts as absent.
func (w *walk) apply(rules *fieldRules, at *field.Path, value, old any, isPointer bool) {
	c := &checker{}
	defer func() { w.errs = append(w.errs, c.errs...) }()
	isEmpty := isZero(value)
	for _, r := range rules.rules {
		switch r.name {
		case "required":
			if isEmpty {
				c.add(field.Required(at, ""))
				return
			}
		case "immutable":
			if w.isUpdate && isChanged(value, old) {
				c.invalid(at, value, "field is immutable")
			}
		case "forbidden":
			if !isEmpty {
				c.add(field.Forbidden(at, ""))
			}
		default:
			if value != nil && (!isEmpty || isPointer || isNumber(value)) {
				c.rule(r, at, value)
			}
		}
	}
}

func isNumber(value any) bool {
	_, ok := value.(int64)
	return ok
}

// isUnset reports whether a value is that of an unset field that Go encodes nevertheless.
func isUnset(value any) bool { return isZero(value) || value == false || value == "0" }

// isZero reports whether a value is absent, empty or 0.
func isZero(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case int64:
		return value == 0
	case []any:
		return len(value) == 0
	case object:
		return len(value) == 0
	}
	return false
}

// rule adds the errors of one rule. Lists are checked item by item.
func (c *checker) rule(r rule, at *field.Path, value any) {
	switch value := value.(type) {
	case []any:
		if r.name == "key" || r.name == "set" {
			c.unique(r, at, value)
			return
		}
		for i, item := range value {
			c.rule(r, at.Index(i), item)
		}
	case int64:
		c.numberRule(r, at, value)
	case string:
		c.stringRule(r, at, value)
	case object:
		if r.name == "labels" {
			c.add(metavalidation.ValidateLabels(nested.StringMap(object{"": value}, ""), at)...)
		} else if r.name == "selector" {
			c.selector(at, value)
		} else if r.name == "keys" {
			for key := range value {
				c.invalid(at.Key(key), key, validation.IsConfigMapKey(key)...)
			}
		}
	}
}

func (c *checker) unique(r rule, at *field.Path, items []any) {
	seen := map[any]bool{}
	for i, item := range items {
		at := at.Index(i)
		if fields, ok := item.(object); ok && len(r.args) == 1 {
			at = at.Child(r.args[0])
			item = fields[r.args[0]]
		}
		if item != nil && seen[item] {
			c.add(field.Duplicate(at, item))
		}
		seen[item] = true
	}
}

func (c *checker) numberRule(r rule, at *field.Path, n int64) {
	switch r.name {
	case "port", "portOrName":
		c.invalid(at, n, validation.IsValidPortNum(int(n))...)
	case "percent":
		if n < 0 {
			c.invalid(at, n, "must be non-negative")
		}
	case "min", "max":
		bound, _ := strconv.ParseInt(r.args[0], 10, 64)
		if r.name == "min" && n < bound || r.name == "max" && n > bound {
			c.invalid(at, n, r.name+" "+r.args[0])
		}
	}
}

// textRules are the rules of strings that return messages.
var textRules = map[string]func(string) []string{
	"label":        validation.IsDNS1123Label,
	"label1035":    validation.IsDNS1035Label,
	"subdomain":    validation.IsDNS1123Subdomain,
	"portName":     validation.IsValidPortName,
	"portOrName":   validation.IsValidPortName,
	"qualified":    validation.IsQualifiedName,
	"configKey":    validation.IsConfigMapKey,
	"envName":      validation.IsRelaxedEnvVarName,
	"headerName":   validation.IsHTTPHeaderName,
	"labelValue":   validation.IsValidLabelValue,
	"pathSegment":  content.IsPathSegmentName,
	"percent":      validation.IsValidPercent,
	"percent100":   percentUpTo100,
	"noBacksteps":  withoutBacksteps,
	"relativePath": relativePath,
	"absolutePath": absolutePath,
}

func (c *checker) stringRule(r rule, at *field.Path, value string) {
	switch {
	case r.name == "enum":
		if !slices.Contains(r.args, value) {
			c.add(field.NotSupported(at, value, r.args))
		}
	case r.name == "fieldPath":
		if !fieldPath().MatchString(value) {
			c.add(field.NotSupported(at, value, []string{}))
		}
	case textRules[r.name] != nil:
		c.invalid(at, value, textRules[r.name](value)...)
	case r.name == "maxLength":
		if limit, _ := strconv.Atoi(r.args[0]); len(value) > limit {
			c.add(field.TooLong(at, "", limit))
		}
	}
}

// fieldPath matches the fields of a pod that an environment variable may have.
var fieldPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(metadata\.(name|namespace|uid|(labels|annotations)\['[^']+'\])|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?))$`)
})

func percentUpTo100(value string) []string {
	if n, _ := strconv.Atoi(strings.TrimSuffix(value, "%")); len(validation.IsValidPercent(value)) == 0 && n > 100 {
		return []string{"must not be greater than 100%"}
	}
	return nil
}

func withoutBacksteps(value string) []string {
	if slices.Contains(strings.Split(value, "/"), "..") {
		return []string{"must not contain '..'"}
	}
	return nil
}

func relativePath(value string) []string {
	if path.IsAbs(value) {
		return []string{"must be a relative path"}
	}
	return withoutBacksteps(value)
}

func absolutePath(value string) []string {
	if !path.IsAbs(value) {
		return []string{"must be an absolute path"}
	}
	return nil
}
