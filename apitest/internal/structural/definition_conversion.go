package structural

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// validateConversion returns the errors of spec.conversion, at the paths of the API server's internal version.
func validateConversion(conversion map[string]any, at *field.Path) field.ErrorList {
	webhook := nested.Map(conversion, "webhook")
	config := nested.Map(webhook, "clientConfig")
	versions := nested.Slice(webhook, "conversionReviewVersions")
	configAt := at.Child("webhookClientConfig")
	versionsAt := at.Child("conversionReviewVersions")
	var errs field.ErrorList
	switch strategy := nested.String(conversion, "strategy"); strategy {
	case "None":
		if config != nil {
			errs = append(errs, field.Forbidden(configAt, "should not be set when strategy is not set to Webhook"))
		}
		if len(versions) > 0 {
			errs = append(errs, field.Forbidden(versionsAt, "should not be set when strategy is not set to Webhook"))
		}
	case "Webhook":
		switch url, service := nested.String(config, "url"), nested.Map(config, "service"); {
		case config == nil:
			errs = append(errs, field.Required(configAt, "required when strategy is set to Webhook"))
		case (config["url"] == nil) == (service == nil):
			errs = append(errs, field.Required(configAt, "exactly one of url or service is required"))
		case service != nil:
			errs = append(errs, validateWebhookService(service, configAt.Child("service"))...)
		default:
			errs = append(errs, validateWebhookURL(url, configAt.Child("url"))...)
		}
		errs = append(errs, validateReviewVersions(versions, versionsAt)...)
	case "":
		errs = append(errs, field.Required(at.Child("strategy"), ""))
	default:
		errs = append(errs, field.NotSupported(at.Child("strategy"), strategy, []string{"None", "Webhook"}))
	}
	return errs
}

func validateReviewVersions(versions []any, at *field.Path) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	for i, version := range versions {
		name, _ := version.(string)
		if slices.Contains(versions[:i], version) {
			errs = append(errs, field.Invalid(at.Index(i), name, "duplicate version"))
		}
		for _, message := range validation.IsDNS1035Label(name) {
			errs = append(errs, field.Invalid(at.Index(i), name, message))
		}
	}
	if !slices.Contains(versions, any("v1")) && !slices.Contains(versions, any("v1beta1")) {
		errs = append(errs, field.Invalid(at, versions, "must include at least one of v1, v1beta1"))
	}
	return errs
}

func validateWebhookURL(text string, at *field.Path) field.ErrorList {
	const form = "; desired format: https://host[/path]"
	parsed, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(at, "url must be a valid URL: "+err.Error()+form)}
	}
	var errs field.ErrorList
	if parsed.Scheme != "https" {
		errs = append(errs, field.Invalid(at, parsed.Scheme, "'https' is the only allowed URL scheme"+form))
	}
	if parsed.Host == "" {
		errs = append(errs, field.Invalid(at, parsed.Host, "host must be specified"+form))
	}
	if parsed.User != nil {
		errs = append(errs, field.Invalid(at, parsed.User.String(), "user information is not permitted in the URL"))
	}
	if parsed.Fragment != "" {
		errs = append(errs, field.Invalid(at, parsed.Fragment, "fragments are not permitted in the URL"))
	}
	if parsed.RawQuery != "" {
		errs = append(errs, field.Invalid(at, parsed.RawQuery, "query parameters are not permitted in the URL"))
	}
	return errs
}

func validateWebhookService(service map[string]any, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range []string{"name", "namespace"} {
		if nested.String(service, name) == "" {
			errs = append(errs, field.Required(at.Child(name), ""))
		}
	}
	if port := nested.Int64(service, "port"); service["port"] != nil {
		for _, message := range validation.IsValidPortNum(int(port)) {
			errs = append(errs, field.Invalid(at.Child("port"), port, "port is not valid: "+message))
		}
	}
	path := nested.String(service, "path")
	if path == "" || path == "/" {
		return errs
	}
	at = at.Child("path")
	if path[0] != '/' {
		errs = append(errs, field.Invalid(at, path, "must start with a '/'"))
	}
	segments := strings.Split(path, "/")[1:]
	if len(segments) == 0 {
		segments = []string{""}
	}
	for i, segment := range segments {
		if segment == "" && i > 0 && i == len(segments)-1 {
			continue // a path may end with a slash
		}
		if segment == "" {
			errs = append(errs, field.Invalid(at, path, fmt.Sprintf("segment[%d] may not be empty", i)))
			continue
		}
		for _, message := range validation.IsDNS1123Subdomain(segment) {
			errs = append(errs, field.Invalid(at, path, fmt.Sprintf("segment[%d]: %s", i, message)))
		}
	}
	return errs
}
