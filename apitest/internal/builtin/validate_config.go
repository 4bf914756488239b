package builtin

import (
	"encoding/base64"
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// maxConfigSize is the maximum total size of the values of a Secret or ConfigMap.
const maxConfigSize = 1024 * 1024

// immutable returns errors for changed fields of an immutable Secret or ConfigMap.
func immutable(obj, old object, names ...string) field.ErrorList {
	const detail = "field is immutable when `immutable` is set"
	var errs field.ErrorList
	if old == nil || !nested.Bool(old, "immutable") {
		return nil
	}
	if !nested.Bool(obj, "immutable") {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), detail))
	}
	for _, name := range names {
		if !reflect.DeepEqual(obj[name], old[name]) {
			errs = append(errs, field.Forbidden(field.NewPath(name), detail))
		}
	}
	return errs
}

// validateKeys checks that keys are file names, and returns the total size of the values.
func validateKeys(obj object, name string, decode bool) (errs field.ErrorList, size int) {
	for key, value := range nested.Map(obj, name) {
		for _, message := range utilvalidation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(field.NewPath(name).Key(key), key, message))
		}
		text, _ := value.(string)
		if size += len(text); decode {
			size += base64.StdEncoding.DecodedLen(len(text)) - len(text)
		}
	}
	return errs, size
}

func validateConfigMap(config, old object) field.ErrorList {
	errs := immutable(config, old, "data", "binaryData")
	data, size := validateKeys(config, "data", false)
	binary, binarySize := validateKeys(config, "binaryData", true)
	errs = append(append(errs, data...), binary...)
	for key := range nested.Map(config, "data") {
		if _, ok := nested.Map(config, "binaryData")[key]; ok {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
	}
	if size+binarySize > maxConfigSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", maxConfigSize))
	}
	return errs
}

func validateSecret(secret, old object) field.ErrorList {
	var errs field.ErrorList
	if old != nil {
		errs = validation.ValidateImmutableField(nested.String(secret, "type"), nested.String(old, "type"), field.NewPath("type"))
		errs = append(errs, immutable(secret, old, "data")...)
	}
	keys, size := validateKeys(secret, "data", true)
	errs = append(errs, keys...)
	if size > maxConfigSize {
		errs = append(errs, field.TooLong(field.NewPath("data"), "", maxConfigSize))
	}
	return append(errs, validateSecretType(secret)...)
}

// validateSecretType checks the data required by the secret's type.
func validateSecretType(secret object) field.ErrorList {
	data := nested.Map(secret, "data")
	path := field.NewPath("data")
	require := func(keys ...string) (errs field.ErrorList) {
		for _, key := range keys {
			if _, ok := data[key]; !ok {
				errs = append(errs, field.Required(path.Key(key), ""))
			}
		}
		return errs
	}
	jsonIn := func(key string) field.ErrorList {
		if errs := require(key); len(errs) > 0 {
			return errs
		}
		content, _ := base64.StdEncoding.DecodeString(nested.String(data, key))
		if err := json.Unmarshal(content, &map[string]any{}); err != nil {
			return field.ErrorList{field.Invalid(path.Key(key), "<secret contents redacted>", err.Error())}
		}
		return nil
	}
	switch nested.String(secret, "type") {
	case "kubernetes.io/service-account-token":
		const name = "kubernetes.io/service-account.name"
		if nested.String(secret, "metadata", "annotations", name) == "" {
			return field.ErrorList{field.Required(field.NewPath("metadata", "annotations").Key(name), "")}
		}
	case "kubernetes.io/dockercfg":
		return jsonIn(".dockercfg")
	case "kubernetes.io/dockerconfigjson":
		return jsonIn(".dockerconfigjson")
	case "kubernetes.io/basic-auth":
		if errs := require("username", "password"); len(errs) == 2 {
			return errs
		}
	case "kubernetes.io/ssh-auth":
		if nested.String(data, "ssh-privatekey") == "" {
			return field.ErrorList{field.Required(path.Key("ssh-privatekey"), "")}
		}
	case "kubernetes.io/tls":
		return require("tls.crt", "tls.key")
	}
	return nil
}
