// Package apitest provides a Kubernetes API server for tests, in the manner of net/http/httptest. It runs inside the test's
// process, is ready within a millisecond, and keeps the API's rules for any kind, custom resources included.
//
//	server := apitest.NewServer(t, &apitest.Options{Objects: definitions, Controllers: apitest.AllControllers})
//	go run(ctx, server.Client()) // the controller under test; Kubeconfig, Config and HTTPClient are for other clients
//	…
//	server.AssertRequests(t, 1, apitest.OfResource("widgets.example.com/status"), apitest.Succeeded)
//
// [Options] has users and RBAC, admission functions, simulated controllers, and handlers for exec, logs and port-forward.
// [Server.Inject] makes requests fail. [Server.Restart] and [Server.Compact] interrupt clients.
// [Server.Clock] changes the time, [Server.SetUsers] the credentials. Options.Copy serves a copy of a cluster, made by package clustercopy. [Server.Requests] and [Server.StatesOf] return the past requests and states. Package simulate
// runs a controller many times under random faults. docs/APITEST.md lists the limits of the server.
package apitest
