module golang

go 1.19
