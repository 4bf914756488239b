package serve

import (
	"k8s.io/apimachinery/pkg/version"
)

// warnOfDeprecation adds the warning for a deprecated version: its deprecationWarning, or a default text with the newest served
// version that is newer and not deprecated.
func (c *call) warnOfDeprecation() {
	spec, _ := c.resource.Definition["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	isDeprecated := false
	text := ""
	better := ""
	for _, v := range versions {
		one, _ := v.(map[string]any)
		name, _ := one["name"].(string)
		if name == c.resource.Version {
			isDeprecated = one["deprecated"] == true
			text, _ = one["deprecationWarning"].(string)
			continue
		}
		isNewer := version.CompareKubeAwareVersionStrings(name, c.resource.Version) > 0
		if one["served"] == true && one["deprecated"] != true && isNewer && (better == "" || version.CompareKubeAwareVersionStrings(name, better) > 0) {
			better = name
		}
	}
	if !isDeprecated {
		return
	}
	if text == "" {
		text = c.resource.APIVersion() + " " + c.resource.Kind + " is deprecated"
		if better != "" {
			text += "; use " + c.resource.Group + "/" + better + " " + c.resource.Kind
		}
	}
	warn(c.w, text)
}
