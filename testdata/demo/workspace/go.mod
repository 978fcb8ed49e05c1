module billing.example/billing

go 1.21
