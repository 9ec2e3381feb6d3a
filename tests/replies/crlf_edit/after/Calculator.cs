using System;

public class Calculator
{
    public int Add(int a, int b) => a + b;

    public int Sub(int a, int b)
    {
        return a - b;
    }
}
