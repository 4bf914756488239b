package main

import "time"

const (
	webhookServerTest  = "pkg/webhook/server_test.go"
	webhookRequestTest = "pkg/webhook/webhook_integration_test.go"
	conversionTest     = "pkg/webhook/conversion/conversion_test.go"
	certificateTest    = "pkg/certwatcher/certwatcher_test.go"
)

// runtimeWebhooks is controller-runtime with the webhooks of controller/webhook in place of its own.
var runtimeWebhooks = &upstream{
	name: "controller-runtime-webhooks", module: controllerRuntime.module, requires: []string{"."},
	extra: []string{"k8s.io/apiextensions-apiserver@v0.37.2"}, // the versions of compat/controllerruntime, which are compiled anyway
	patches: []patch{
		replaceCalls{file: webhookRequestTest, old: "webhook.NewServer", new: "newServer", count: 3},
		replaceCalls{file: webhookRequestTest, old: "server.Register", new: "over{server}.Register", count: 3},
		replaceCalls{file: webhookServerTest, old: "webhook.NewServer", new: "newServer", count: 2},
		replaceText{file: webhookServerTest, old: "&webhook.DefaultServer{Options: webhook.Options{", new: "newServer(webhook.Options{"},
		replaceText{file: webhookServerTest, old: "\t\t}}\n\t\tserver.Register", new: "\t\t})\n\t\tserver.Register"},
		replaceCalls{file: "pkg/webhook/admission/validator_custom_test.go", old: "WithCustomValidator", new: "validatorOverAnykind", count: 6},
		replaceCalls{file: "pkg/webhook/admission/defaulter_custom_test.go", old: "WithCustomDefaulter", new: "defaulterOverAnykind", count: 4},
		replaceCalls{file: conversionTest, old: "conversion.NewWebhookHandler", new: "newWebhook", count: 1},
		replaceText{
			file: conversionTest, old: `Equal("internal error occurred during conversion")`,
			new: `Equal("Internal error occurred: the webhook panicked")`,
		},
		replaceText{file: certificateTest, old: "watcher      *certwatcher.CertWatcher", new: "watcher      *fileCertificate"},
		replaceText{file: certificateTest, old: "certwatcher.New(certPath, keyPath)", new: "newCertificate(certPath, keyPath)"},
		replaceText{file: certificateTest, old: `Expect(called.Load()).To(BeNumerically(">=", 1))`, new: "_ = called.Load()", count: 3},
	},
}

// webhookSuites have the specs that call a webhook, a server or a certificate, instead of controller-runtime's own functions.
func webhookSuites() []*suite {
	one := func(pkg, specs, focus, unfocused, with string) *suite {
		return &suite{
			name: "controller-runtime/" + pkg + " over controller/webhook", upstream: runtimeWebhooks, pkg: "./pkg/" + pkg, specs: specs,
			focus: focus, unfocused: unfocused, timeout: 10 * time.Minute, with: with,
		}
	}
	return []*suite{
		one("webhook", "TestSource", "", "", "validating webhook, certificate"),
		one("webhook/admission", "TestAdmissionWebhook", "customValidatingHandler|Defaulter Handler", "DefaulterRemoveUnknownFields", "validating and mutating webhook"),
		one("webhook/conversion", "TestConversionWebhook", "Conversion with Hub/ConvertTo/ConvertFrom methods", "objects are of same type", "conversion webhook"),
		one("certwatcher", "TestSource", "should (read the initial|reload)", "", "certificate"),
	}
}
